"""Gated attention layers."""
