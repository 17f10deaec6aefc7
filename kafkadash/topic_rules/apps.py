from django.apps import AppConfig


class TopicRulesConfig(AppConfig):
    name = "kafkadash.topic_rules"
    label = "topic_rules"

    def ready(self) -> None:
        from kafkadash.core.messages import register_messages
        from kafkadash.topic_rules.messages import (
            RULE_CONFLICT_MESSAGES,
            RULE_ERROR_MESSAGES,
            RULE_MESSAGES,
            RULE_TITLES,
            RULE_WRITERS,
        )

        register_messages(RULE_ERROR_MESSAGES)
        register_messages(RULE_CONFLICT_MESSAGES, RULE_WRITERS)
        register_messages(RULE_MESSAGES, RULE_WRITERS)
        register_messages(RULE_TITLES)
