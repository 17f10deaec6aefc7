#!/usr/bin/env python
"""Runs kafkadash's commands: ``python manage.py help`` lists them."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kafkadash.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"kafkadash is not configured: {error}")


if __name__ == "__main__":
    main()
