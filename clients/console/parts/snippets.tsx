import { useSignal } from '@preact/signals';
import { Copy } from './copy.js';

interface SnippetsProps<T> {
  /** Accessible name of the choice. */
  label: string;
  /** Texts by their name, in the order of the choice. */
  texts: Readonly<Record<string, (about: T) => string>>;
  about: T;
}

/** A choice of commands and programs, of which one is shown to be copied. */
export function Snippets<T>({ label, texts, about }: SnippetsProps<T>) {
  const names = Object.keys(texts);
  const chosen = useSignal(names[0] ?? '');
  const text = texts[chosen.value]?.(about) ?? '';
  return (
    <>
      <div class="filters">
        <select
          aria-label={label}
          value={chosen.value}
          onChange={({ currentTarget: { value } }) => (chosen.value = value)}
        >
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <Copy text={text} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it */}
      <pre class="preview" tabIndex={0}>
        {text}
      </pre>
    </>
  );
}
