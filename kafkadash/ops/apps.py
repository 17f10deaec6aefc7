from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "kafkadash.ops"
    label = "ops"

    def ready(self) -> None:
        from kafkadash.ops import after_collect  # noqa: F401  connects the receiver
