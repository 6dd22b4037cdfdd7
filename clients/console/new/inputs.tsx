import type { Signal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { createContext, type FunctionComponent } from 'preact';
import { useContext, useEffect } from 'preact/hooks';
import type { Path } from '../parts/fields.js';
import { short } from '../parts/format.js';
import { Labelled, useField } from '../parts/labelled.js';
import { type Draft, valueAt, withValue } from './draft.js';
import { type NumberField, numberIn } from './fields.js';
import type { Plan } from './plan.js';

interface Form {
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

interface TextInputProps {
  path: Path;
  label: string;
  placeholder?: string;
}

export function TextInput({ path, label, placeholder }: TextInputProps) {
  const { draft } = useForm();
  return (
    <Labelled label={label} path={path}>
      {(attributes) => (
        <input
          {...attributes}
          type="text"
          autocomplete="off"
          placeholder={placeholder}
          value={String(valueAt(draft.value, path) ?? '')}
          onInput={({ currentTarget: { value } }) => {
            draft.value = withValue(draft.value, path, value === '' ? undefined : value);
          }}
        />
      )}
    </Labelled>
  );
}

interface TextAreaProps extends TextInputProps {
  rows: number;
}

export function TextAreaInput({ path, label, placeholder, rows }: TextAreaProps) {
  const { draft } = useForm();
  return (
    <Labelled label={label} path={path}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="mono"
          rows={rows}
          spellcheck={false}
          placeholder={placeholder}
          value={String(valueAt(draft.value, path) ?? '')}
          onInput={({ currentTarget: { value } }) => {
            draft.value = withValue(draft.value, path, value === '' ? undefined : value);
          }}
        />
      )}
    </Labelled>
  );
}

/** A field that is false without it. */
export function CheckInput({ path, label }: { path: Path; label: string }) {
  const { draft } = useForm();
  const { errors, attributes } = useField(path);
  return (
    <div class="field">
      <label class="check">
        <input
          type="checkbox"
          {...attributes}
          checked={valueAt(draft.value, path) === true}
          onChange={({ currentTarget: { checked } }) => {
            draft.value = withValue(draft.value, path, checked || undefined);
          }}
        />
        {label}
      </label>
      {errors}
    </div>
  );
}

interface OneOfProps {
  /** Label of the choice. */
  label: string;
  /** Field whose errors stand at the choice; none by default. */
  path?: Path;
  /** The object with the fields. */
  parent: Path;
  fields: readonly { name: string; label: string }[];
  Input: FunctionComponent<{ path: Path; label: string }>;
}

/** Fields of which a document has one: a choice of it, and its input. */
export function OneOfInputs({ label, path = NOWHERE, parent, fields, Input }: OneOfProps) {
  const { draft } = useForm();
  const pathOf = ({ name }: { name: string }) => [...parent, name];
  const given = fields.find((field) => valueAt(draft.value, pathOf(field)) !== undefined);
  const chosen = useSignal(fields[0]?.name);
  const current = given ?? fields.find(({ name }) => name === chosen.value);
  const choose = (name: string) => {
    chosen.value = name;
    draft.value = fields.reduce(
      (changed, field) => withValue(changed, pathOf(field), undefined),
      draft.value,
    );
  };
  return (
    <>
      {fields.length > 1 && (
        <Choice
          path={path}
          label={label}
          options={fields.map((field) => ({ value: field.name, label: field.label }))}
          value={current?.name ?? ''}
          choose={choose}
        />
      )}
      {current && <Input key={current.name} path={pathOf(current)} label={current.label} />}
    </>
  );
}

/** The path of a choice that is no field of the document. */
const NOWHERE: Path = [''];

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

interface Option {
  value: string;
  label: string;
  /** Heading above the options of a group. */
  group?: string;
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
          <Options options={options.filter(({ group }) => group === undefined)} />
          {[...new Set(options.map(({ group }) => group))].map(
            (group) =>
              group !== undefined && (
                <optgroup key={group} label={group}>
                  <Options options={options.filter((option) => option.group === group)} />
                </optgroup>
              ),
          )}
        </select>
      )}
    </Labelled>
  );
}

const Options = ({ options }: { options: readonly Option[] }) => (
  <>
    {options.map(({ value, label }) => (
      <option key={value} value={value}>
        {label}
      </option>
    ))}
  </>
);

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
