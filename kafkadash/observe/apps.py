from django.apps import AppConfig


class ObserveConfig(AppConfig):
    name = "kafkadash.observe"
    label = "observe"

    def ready(self) -> None:
        from kafkadash.domain.messages import register_messages
        from kafkadash.observe.messages import COLLECTION_MESSAGES

        register_messages(COLLECTION_MESSAGES)
