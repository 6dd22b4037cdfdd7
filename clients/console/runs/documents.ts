/** Documents of jobs side by side. */

/** Returns the fields of a document that are no objects; lists count as one. */
export function fieldsOf(document: unknown, at = ''): Map<string, unknown> {
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    return new Map([[at, document]]);
  return new Map(
    Object.entries(document).flatMap(([name, value]) => [
      ...fieldsOf(value, `${at}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`),
    ]),
  );
}

export interface Difference {
  pointer: string;
  /** By document; undefined where it has no such field. */
  values: unknown[];
}

/** Returns the fields in which documents differ, in the order of the first document that has them. */
export function differences(documents: readonly unknown[]): Difference[] {
  const all = documents.map((document) => fieldsOf(document));
  const pointers = new Set(all.flatMap((fields) => [...fields.keys()]));
  return [...pointers].flatMap((pointer) => {
    const values = all.map((fields) => fields.get(pointer));
    const texts = new Set(values.map((value) => JSON.stringify(value)));
    return texts.size === 1 ? [] : [{ pointer, values }];
  });
}

/** A committed checkpoint, as far as it is compared. */
interface Proof {
  step: number;
  state_digest: string;
}

interface Agreement {
  /** Highest step at which all have the same digest; null for none. */
  equal_until: number | null;
  /** Lowest step at which digests differ; null for none. */
  differs_at: number | null;
}

/** Compares trainings by the digests of checkpoints that all of them have. Equal digests prove equal states. */
export function agreement(runs: readonly (readonly Proof[])[]): Agreement {
  const [first = [], ...others] = runs.map((proofs) => new Map(proofs.map((proof) => [proof.step, proof])));
  const common = [...first.keys()].filter((step) => others.every((proofs) => proofs.has(step)));
  const isEqual = (step: number) =>
    others.every(
      (proofs) => proofs.get(step)?.state_digest === (first as Map<number, Proof>).get(step)?.state_digest,
    );
  const steps = common.sort((a, b) => a - b);
  const differsAt = steps.find((step) => !isEqual(step)) ?? null;
  const equalUntil = steps.filter((step) => isEqual(step) && (differsAt === null || step < differsAt)).at(-1);
  return { equal_until: equalUntil ?? null, differs_at: differsAt };
}

/**
 * Returns the last names of fields, such as `lr`; dotted paths of those that are ambiguous.
 * @param pointers JSON pointers
 */
export function shortNames(pointers: readonly string[]): string[] {
  const names = pointers.map((pointer) => pointer.split('/').slice(1));
  const lasts = names.map((path) => path.at(-1) ?? '');
  return lasts.map((last, index) =>
    lasts.indexOf(last) === lasts.lastIndexOf(last) ? last : (names[index] ?? []).join('.'),
  );
}
