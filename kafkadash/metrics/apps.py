from django.apps import AppConfig


class MetricsConfig(AppConfig):
    name = "kafkadash.metrics"
    label = "metrics"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.metrics.messages import METRICS_MESSAGES

        register_messages(METRICS_MESSAGES)
