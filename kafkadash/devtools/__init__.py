"""Tools to try and test the product: servers, a playground of Kafka brokers, the demo."""
