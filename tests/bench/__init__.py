"""What the product promises about speed, measured. ``make bench-NAME`` runs one group; not part of ``make test``."""
