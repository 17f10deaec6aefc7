from django.apps import AppConfig


class ClustersConfig(AppConfig):
    name = "kafkadash.clusters"
    label = "clusters"

    def ready(self) -> None:
        from kafkadash.clusters.messages import CLUSTER_MESSAGES, KAFKA_MESSAGES
        from kafkadash.core.messages import register_messages

        register_messages(CLUSTER_MESSAGES)
        register_messages(KAFKA_MESSAGES)
