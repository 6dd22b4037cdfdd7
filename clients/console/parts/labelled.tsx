import { type ComponentChildren, createContext } from 'preact';
import { useContext, useEffect, useId } from 'preact/hooks';
import { type Fields, type Path, pointerOf } from './fields.js';

export const FieldsContext = createContext<Fields | null>(null);

/** Attributes of an input that may have errors. */
interface InputAttributes {
  'aria-invalid': boolean;
  'aria-describedby': string | undefined;
}

/** The errors of a field, and the attributes of its inputs. @param path field of the document that they write */
export function useField(path: Path): { errors: ComponentChildren; attributes: InputAttributes } {
  const id = useId();
  const fields = useContext(FieldsContext);
  useEffect(() => fields?.show(path), [fields, pointerOf(path)]);
  const faults = fields?.errorsAt(path) ?? [];
  if (faults.length === 0)
    return { errors: null, attributes: { 'aria-invalid': false, 'aria-describedby': undefined } };
  const errors = (
    <ul id={id} class="errors small">
      {faults.map(({ pointer, message }) => (
        <li key={pointer + message}>{message}</li>
      ))}
    </ul>
  );
  return { errors, attributes: { 'aria-invalid': true, 'aria-describedby': id } };
}

interface LabelledProps {
  label: string;
  path: Path;
  children: (attributes: InputAttributes & { id: string }) => ComponentChildren;
}

/** A label with its input, and the errors of its field. */
export function Labelled({ label, path, children }: LabelledProps) {
  const id = useId();
  const { errors, attributes } = useField(path);
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, ...attributes })}
      {errors}
    </div>
  );
}
