"""From rule file to pytest item."""
