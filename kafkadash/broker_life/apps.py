from django.apps import AppConfig


class BrokerLifeConfig(AppConfig):
    name = "kafkadash.broker_life"
    label = "broker_life"

    def ready(self) -> None:
        from kafkadash.broker_life import cordon, unregister
        from kafkadash.broker_life.messages import (
            BROKER_LIFE_ERROR_MESSAGES,
            BROKER_LIFE_MESSAGES,
            BROKER_LIFE_TITLES,
            BROKER_LIFE_WRITERS,
        )
        from kafkadash.core.messages import register_messages

        cordon.make_known()
        unregister.make_known()
        register_messages(BROKER_LIFE_ERROR_MESSAGES)
        register_messages(BROKER_LIFE_MESSAGES, BROKER_LIFE_WRITERS)
        register_messages(BROKER_LIFE_TITLES)
