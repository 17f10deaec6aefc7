from django.apps import AppConfig


class TopicAlterConfig(AppConfig):
    name = "kafkadash.topic_alter"
    label = "topic_alter"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.topic_alter.messages import ALTER_ERROR_MESSAGES

        register_messages(ALTER_ERROR_MESSAGES)
