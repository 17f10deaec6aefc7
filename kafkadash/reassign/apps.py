from django.apps import AppConfig


class ReassignConfig(AppConfig):
    name = "kafkadash.reassign"
    label = "reassign"
