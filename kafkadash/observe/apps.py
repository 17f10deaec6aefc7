from django.apps import AppConfig


class ObserveConfig(AppConfig):
    name = "kafkadash.observe"
    label = "observe"
