/** Fields of a form, which are those of a document, and the errors at them. */
import { computed, type ReadonlySignal, signal } from '@preact/signals';

/** Names of nested fields. */
export type Path = readonly string[];

export const pointerOf = (path: Path) => `/${path.join('/')}`;

/** An error of one field. */
interface FieldFault {
  pointer: string;
  message: string;
}

/** An error as the console shows it. */
export interface Fault {
  /** Code of the catalogue, or `offline`. */
  code: string;
  message: string;
  /** Bad fields of a document. */
  fields: readonly FieldFault[];
}

/** The errors of one form: at the fields that it shows, and the others. */
export class Fields {
  private readonly shown = signal<readonly Path[]>([]);
  /** The error, with those of fields that the form does not show. */
  readonly rest = computed(
    () =>
      this.fault.value && {
        ...this.fault.value,
        fields: unplacedErrors(this.fault.value.fields, this.shown.value),
      },
  );

  /** @param fault the last answer to the form; null if it was accepted */
  constructor(private readonly fault: ReadonlySignal<Fault | null>) {}

  /** Says that the form shows a field. @returns a function that says that it no longer does */
  show(path: Path): () => void {
    this.shown.value = [...this.shown.peek(), path];
    return () => {
      this.shown.value = this.shown.peek().filter((other) => other !== path);
    };
  }

  errorsAt(path: Path): readonly FieldFault[] {
    return errorsAt(this.fault.value?.fields ?? [], path, this.shown.value);
  }
}

const isAt = (pointer: string, path: Path) =>
  pointer === pointerOf(path) || pointer.startsWith(`${pointerOf(path)}/`);

/** Errors of a field, and of the fields in it that show no errors of their own. */
const errorsAt = (fields: readonly FieldFault[], path: Path, shown: readonly Path[]): readonly FieldFault[] =>
  fields.filter(
    ({ pointer }) =>
      isAt(pointer, path) &&
      !shown.some(
        (other) => other.length > path.length && isAt(pointerOf(other), path) && isAt(pointer, other),
      ),
  );

/** Errors that no field of the form shows. */
const unplacedErrors = (fields: readonly FieldFault[], shown: readonly Path[]): readonly FieldFault[] =>
  fields.filter(({ pointer }) => !shown.some((path) => isAt(pointer, path)));
