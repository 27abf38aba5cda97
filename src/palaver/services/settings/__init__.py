"""Settings that owners change while Palaver runs: stored, encrypted, validated, recorded, and in force everywhere.

`sealing` encrypts secrets; `stored_values` is what is in the database; `reader` combines it with config.yaml and the
environment; `editor` changes and undoes; `key_rotation` re-encrypts; `overview` describes everything for a page;
`live_settings` follows the changes of all processes; `model_providers` asks providers of models.
"""
