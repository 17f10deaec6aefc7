from django.apps import AppConfig


class ConfigsConfig(AppConfig):
    name = "kafkadash.configs"
    label = "configs"

    def ready(self) -> None:
        from kafkadash.configs import kind
        from kafkadash.configs.messages import CONFIG_ERROR_MESSAGES, CONFIG_MESSAGES, CONFIG_TITLES
        from kafkadash.core.messages import register_messages

        kind.make_known()
        register_messages(CONFIG_ERROR_MESSAGES)
        register_messages(CONFIG_MESSAGES)
        register_messages(CONFIG_TITLES)
