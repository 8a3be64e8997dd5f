"""Gated linear units and feed-forward layers."""
