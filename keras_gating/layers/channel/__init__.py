"""Gates on channels and on positions of feature maps."""
