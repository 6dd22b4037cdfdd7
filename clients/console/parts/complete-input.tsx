import { useSignal } from '@preact/signals';

interface CompleteInputProps {
  type: 'text' | 'number' | 'datetime-local';
  'aria-label'?: string;
  placeholder?: string;
  list?: string;
  min?: number;
  value: string;
  /** Called at Enter, or when the focus leaves a changed field. */
  onComplete: (written: string) => void;
}

/** A field whose text counts once it is complete. What is being written stays while the page around it is read anew. */
export function CompleteInput({ value, onComplete, ...attributes }: CompleteInputProps) {
  const written = useSignal<string | null>(null);
  return (
    <input
      {...attributes}
      value={written.value ?? value}
      onInput={({ currentTarget }) => {
        written.value = currentTarget.value;
      }}
      // preact/compat makes `onChange` of a text field one of each letter.
      onChangeCapture={({ currentTarget }) => {
        written.value = null;
        onComplete(currentTarget.value);
      }}
      onBlur={() => {
        written.value = null;
      }}
    />
  );
}
