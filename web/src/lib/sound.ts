const NOTES = [660, 880];
const NOTE_S = 0.12;
const LOUD = 0.06;

let context: AudioContext | undefined;

/** Two soft notes, made here so that nothing is loaded; silent where the browser allows no sound yet. */
export function chime(): void {
  context ??= new AudioContext();
  for (const [at, pitch] of NOTES.entries()) note(context, pitch, at * NOTE_S);
}

function note(audio: AudioContext, pitch: number, after: number): void {
  const [tone, volume] = [audio.createOscillator(), audio.createGain()];
  const start = audio.currentTime + after;
  tone.frequency.value = pitch;
  volume.gain.setValueAtTime(LOUD, start);
  volume.gain.exponentialRampToValueAtTime(0.001, start + NOTE_S);
  tone.connect(volume).connect(audio.destination);
  tone.start(start);
  tone.stop(start + NOTE_S);
}
