from django.apps import AppConfig


class MonitoringConfig(AppConfig):
    name = "kafkadash.monitoring"
    label = "monitoring"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.monitoring.messages import CANARY_MESSAGES, COLLECTION_MESSAGES, TRANSACTION_MESSAGES

        register_messages(COLLECTION_MESSAGES)
        register_messages(CANARY_MESSAGES)
        register_messages(TRANSACTION_MESSAGES)
