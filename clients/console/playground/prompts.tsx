import type { Signal } from '@preact/signals';
import { useStored } from '../parts/stored.js';
import type { Settings } from './request.js';

const MAX_KEPT = 20;
const SHOWN = 60;

/** Prompts to begin with. */
const PRESETS: Readonly<Record<Settings['mode'], readonly string[]>> = {
  chat: [
    'Introduce yourself in two sentences.',
    'Explain gradient descent to a ten-year-old.',
    'Write a haiku about the sea.',
    'Answer with JSON only: the three primary colours and their hex codes.',
  ],
  text: ['Once upon a time', 'The most important thing about', 'def fibonacci(n):'],
};

/** A choice of prompts: some to begin with, and those that were kept in this browser. */
export function Prompts({ mode, prompt }: { mode: Settings['mode']; prompt: Signal<string> }) {
  const kept = useStored<readonly string[]>('playground.prompts', []);
  const isKept = kept.value.includes(prompt.value);
  const toggle = () => {
    const others = kept.value.filter((one) => one !== prompt.value);
    kept.value = isKept ? others : [prompt.value, ...others].slice(0, MAX_KEPT);
  };
  return (
    <>
      <select
        aria-label="Prompts"
        value=""
        onChange={(event) => {
          prompt.value = event.currentTarget.value;
          event.currentTarget.value = '';
        }}
      >
        <option value="">Prompts…</option>
        {[...kept.value, ...PRESETS[mode]].map((text) => (
          <option key={text} value={text}>
            {text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}
          </option>
        ))}
      </select>
      <button type="button" disabled={prompt.value.trim() === ''} onClick={toggle}>
        {isKept ? 'Forget this prompt' : 'Keep this prompt'}
      </button>
    </>
  );
}
