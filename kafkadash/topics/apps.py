from django.apps import AppConfig


class TopicsConfig(AppConfig):
    name = "kafkadash.topics"
    label = "topics"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.topics import creation, deletion, growth
        from kafkadash.topics.messages import (
            TOPIC_ERROR_MESSAGES,
            TOPIC_MESSAGES,
            TOPIC_TITLES,
        )

        creation.make_known()
        deletion.make_known()
        growth.make_known()
        register_messages(TOPIC_ERROR_MESSAGES)
        register_messages(TOPIC_MESSAGES)
        register_messages(TOPIC_TITLES)
