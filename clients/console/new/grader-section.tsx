import { useEffect, useRef } from 'preact/hooks';
import type { Dataset, Grader } from '../../../contracts/types.js';
import { useLoaded } from '../app/loaded.js';
import { beginningOf } from '../data/beginning.js';
import { valueAt, withValue } from './draft.js';
import { PATHS } from './fields.js';
import {
  answerField,
  firstLine,
  GRADERS,
  kindOf,
  missingFields,
  OPERATIONS,
  SIMILARITIES,
} from './graders.js';
import { Choice, TextAreaInput, TextInput, useForm } from './inputs.js';
import { JsonInput } from './json-input.js';
import { TryGrader } from './try-grader.js';

/** Where the answers of reinforcement learning get their rewards. */
export function GraderSection({ dataset }: { dataset: Dataset | undefined }) {
  const { draft } = useForm();
  const { value: read } = useLoaded(
    async (signal) => (dataset === undefined ? [] : beginningOf(dataset, signal)),
    [dataset?.id],
  );
  const documents = read.value;
  const grader = valueAt(draft.value, PATHS.grader);
  /** Graders of other kinds, as they were left. */
  const left = useRef(new Map<string, unknown>());
  const begin = (kind: Grader['type']) => {
    const begun = left.current.get(kind) ?? GRADERS[kind].begun(answerField(documents ?? []));
    draft.value = withValue(draft.value, PATHS.grader, begun);
  };
  useEffect(() => {
    if (documents !== null && grader === undefined) begin('string_check');
  }, [documents]);
  const kind = kindOf(grader);
  const line = firstLine(documents ?? []);
  const missing = line === null ? [] : missingFields(grader, line);
  return (
    <section class="card part" aria-labelledby="new-grader">
      <h2 id="new-grader">Grader</h2>
      <p class="small muted">
        The model answers each prompt several times, and the grader scores the answers. Its texts may contain{' '}
        <code>{'{{sample.output_text}}'}</code>
        {line && ', and of a line '}
        {Object.keys(line ?? {}).map((name, index) => (
          <span key={name}>
            {index > 0 && ', '}
            <code>{`{{item.${name}}}`}</code>
          </span>
        ))}
        .
      </p>
      <div class="fields">
        <Choice
          path={PATHS.grader}
          label="Kind of grader"
          options={Object.entries(GRADERS).map(([value, { label }]) => ({ value, label }))}
          value={kind ?? ''}
          choose={(chosen) => {
            if (kind !== undefined) left.current.set(kind, grader);
            const other = kindOf({ type: chosen });
            if (other !== undefined) begin(other);
          }}
        />
        {kind === 'string_check' && <Comparison name="operation" label="Operation" values={OPERATIONS} />}
        {kind === 'text_similarity' && (
          <Comparison name="evaluation_metric" label="Measure" values={SIMILARITIES} />
        )}
      </div>
      {kind === 'python' && <TextAreaInput path={[...PATHS.grader, 'source']} label="Source" rows={8} />}
      {kind !== undefined && !OWN_FIELDS.includes(kind) && (
        <div class="field">
          <JsonInput
            label="Grader as JSON"
            rows={14}
            value={grader}
            onWrite={(written) => {
              draft.value = withValue(draft.value, PATHS.grader, written);
            }}
          />
        </div>
      )}
      {missing.map((name) => (
        <p key={name} class="notice small">
          The first line has no field <code>{name}</code>.
        </p>
      ))}
      {kind !== undefined && <TryGrader line={line} />}
    </section>
  );
}

/** Kinds with inputs; the others are written as JSON. */
const OWN_FIELDS: readonly Grader['type'][] = ['string_check', 'text_similarity', 'python'];

interface ComparisonProps {
  /** Field of the grader that says how the texts are compared. */
  name: string;
  label: string;
  values: Readonly<Record<string, string>>;
}

function Comparison({ name, label, values }: ComparisonProps) {
  const { draft } = useForm();
  const path = [...PATHS.grader, name];
  return (
    <>
      <Choice
        path={path}
        label={label}
        options={Object.entries(values).map(([value, text]) => ({ value, label: text }))}
        value={String(valueAt(draft.value, path) ?? '')}
        choose={(chosen) => {
          draft.value = withValue(draft.value, path, chosen);
        }}
      />
      <TextInput path={[...PATHS.grader, 'input']} label="Text" />
      <TextInput path={[...PATHS.grader, 'reference']} label="Reference" />
    </>
  );
}
