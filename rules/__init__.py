"""The rules of gpulint, one file each, grouped by what is wasted."""
