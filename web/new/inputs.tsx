import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext, useEffect } from 'preact/hooks';
import type { Path } from '../parts/fields.js';
import { short } from '../parts/format.js';
import { Labelled } from '../parts/labelled.js';
import { type Draft, valueAt, withValue } from './draft.js';
import { type NumberField, numberIn } from './fields.js';
import type { Plan } from './plan.js';

export interface Form {
  draft: Signal<Draft>;
  plan: Plan;
}

export const FormContext = createContext<Form | null>(null);

export function useForm(): Form {
  const form = useContext(FormContext);
  if (form === null) throw new Error('outside of a form');
  return form;
}

/** The server's default stands where nothing was entered. */
function useDefault(path: Path): string {
  const { plan } = useForm();
  const value = valueAt(plan.resolved.value, path);
  return value === undefined || value === null ? '' : short(value);
}

export function NumberInput({ path, label }: NumberField) {
  const { draft } = useForm();
  const value = valueAt(draft.value, path);
  const text = useSignal(String(value ?? ''));
  useEffect(() => {
    // The document may be changed elsewhere; what is being written, such as "1e-", stays.
    if (numberIn(text.value) !== value) text.value = String(value ?? '');
  }, [value, text]);
  const resolved = useDefault(path);
  return (
    <Labelled label={label} path={path}>
      {(attributes) => (
        <input
          {...attributes}
          type="text"
          inputMode="decimal"
          autocomplete="off"
          value={text.value}
          placeholder={resolved}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
            draft.value = withValue(draft.value, path, numberIn(text.value));
          }}
        />
      )}
    </Labelled>
  );
}

export interface Option {
  value: string;
  label: string;
}

interface ChoiceProps {
  path: Path;
  label: string;
  options: readonly Option[];
  value: string;
  choose: (value: string) => void;
}

/** A choice. A value of the document that is not offered stays one of the options. */
export function Choice({ path, label, options, value, choose }: ChoiceProps) {
  const isOffered = options.some((option) => option.value === value);
  return (
    <Labelled label={label} path={path}>
      {(attributes) => (
        <select {...attributes} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
          {!isOffered && <option value={value}>{value || 'choose …'}</option>}
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

/** A choice of a field with a default, which is chosen by leaving it out. */
export function DefaultedChoice({
  path,
  label,
  values,
}: {
  path: Path;
  label: string;
  values: readonly string[];
}) {
  const { draft } = useForm();
  const resolved = useDefault(path);
  const usual = { value: '', label: resolved === '' ? 'default' : `default (${resolved})` };
  const options = values.map((value) => ({ value, label: value }));
  const value = valueAt(draft.value, path);
  return (
    <Choice
      path={path}
      label={label}
      options={[usual, ...options]}
      value={value === undefined ? '' : String(value)}
      choose={(chosen) => {
        draft.value = withValue(draft.value, path, chosen === '' ? undefined : chosen);
      }}
    />
  );
}
