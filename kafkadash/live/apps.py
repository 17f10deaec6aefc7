from django.apps import AppConfig


class LiveConfig(AppConfig):
    name = "kafkadash.live"
    label = "live"

    def ready(self) -> None:
        from kafkadash.live.signals import connect

        connect()
