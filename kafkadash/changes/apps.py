from django.apps import AppConfig


class ChangesConfig(AppConfig):
    name = "kafkadash.changes"
    label = "changes"
