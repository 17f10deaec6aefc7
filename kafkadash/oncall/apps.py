from django.apps import AppConfig


class OnCallConfig(AppConfig):
    name = "kafkadash.oncall"
    label = "oncall"
