from django.apps import AppConfig


class MaintenanceConfig(AppConfig):
    name = "kafkadash.maintenance"
    label = "maintenance"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.maintenance.messages import MAINTENANCE_MESSAGES

        register_messages(MAINTENANCE_MESSAGES)
