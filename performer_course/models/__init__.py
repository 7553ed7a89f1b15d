"""Pretrained models, read without their frameworks, whose attention can be replaced.

    antibody     an encoder of antibodies: AntiBERTy, eight blocks of eight heads (lesson 17)
    speech       an encoder and decoder that transcribe speech: Whisper tiny (lesson 18)
    language     a decoder that continues a text: SmolLM2-135M (lesson 22)

`make model` fetches their weights. Each has `find`, `load` and functions that take `attend`, the
attention to run with. `_whisper` and `_gguf` read the files of `speech` and of `language`.
"""
