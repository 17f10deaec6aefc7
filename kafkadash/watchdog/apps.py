from django.apps import AppConfig


class WatchdogConfig(AppConfig):
    name = "kafkadash.watchdog"
    label = "watchdog"
