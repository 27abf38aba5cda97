"""Speech on this machine, as the programs that people put into `speech.speaking_command` and `transcription_command`.

    python local_speech.py speak < text > file.wav        eSpeak NG (the library and its voices, from a wheel)
    python local_speech.py transcribe file.wav            PocketSphinx (with its model of English, from a wheel)

Both are real engines and need no network. They are small enough for tests, and too weak for people.
"""

from __future__ import annotations

import array
import ctypes
import sys
import wave

RECOGNIZER_RATE = 16_000  # samples per second
_SYNCHRONOUS, _UTF8 = 2, 1  # AUDIO_OUTPUT_SYNCHRONOUS, espeakCHARS_UTF8


def speak(text: str) -> None:
    """Write a WAV file with the spoken text to stdout."""
    import espeakng_loader

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
    samples: list[bytes] = []

    def add_samples(audio: ctypes._Pointer[ctypes.c_short], count: int, _events: object) -> int:
        if count > 0:
            samples.append(ctypes.string_at(audio, count * 2))
        return 0

    callback_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    callback = callback_type(add_samples)  # kept until the end: the library calls it
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(b"en-us")
    data = text.encode()
    library.espeak_Synth(data, ctypes.c_size_t(len(data) + 1), 0, 0, 0, _UTF8, None, None)
    with wave.open(sys.stdout.buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.setnframes(sum(map(len, samples)) // 2)  # a pipe can't be corrected afterwards
        file.writeframes(b"".join(samples))


def transcribe(path: str) -> None:
    """Print the words of a WAV file."""
    from pocketsphinx import Decoder

    with wave.open(path, "rb") as file:
        rate = file.getframerate()
        samples = array.array("h", file.readframes(file.getnframes()))
    count = len(samples) * RECOGNIZER_RATE // rate
    resampled = array.array("h", (samples[index * rate // RECOGNIZER_RATE] for index in range(count)))
    decoder = Decoder(samprate=RECOGNIZER_RATE)
    decoder.start_utt()
    decoder.process_raw(resampled.tobytes(), full_utt=True)
    decoder.end_utt()
    found = decoder.hyp()
    sys.stdout.write("" if found is None else found.hypstr)


if __name__ == "__main__":
    if sys.argv[1] == "speak":
        speak(sys.stdin.read())
    else:
        transcribe(sys.argv[2])
