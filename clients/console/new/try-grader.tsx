import { useSignal } from '@preact/signals';
import { useId } from 'preact/hooks';
import type { Grade, Grader } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { ActionButton } from '../parts/action.js';
import { short } from '../parts/format.js';
import { valueAt } from './draft.js';
import { PATHS } from './fields.js';
import { useForm } from './inputs.js';
import { JsonInput } from './json-input.js';

type Line = Readonly<Record<string, unknown>>;

/** Grades an answer that is written by hand. @param line first line of the data; null for none */
export function TryGrader({ line }: { line: Line | null }) {
  const { draft } = useForm();
  const id = useId();
  const answer = useSignal('');
  const written = useSignal<Line | null>(null);
  const grade = useSignal<{ of: string; grade: Grade } | null>(null);
  const item = written.value ?? line ?? {};
  const grader = valueAt(draft.value, PATHS.grader);
  const graded = JSON.stringify([grader, answer.value, item]);
  const run = async () => {
    // The server checks what the form does not.
    grade.value = { of: graded, grade: await client.grade(grader as Grader, answer.value, { ...item }) };
  };
  return (
    <details>
      <summary>Try the grader</summary>
      <div class="part try">
        <div class="field">
          <label htmlFor={id}>An answer</label>
          <textarea
            id={id}
            rows={2}
            value={answer.value}
            onInput={({ currentTarget: { value } }) => {
              answer.value = value;
            }}
          />
        </div>
        <div class="field">
          <span>To this line of the data</span>
          <JsonInput
            label="Line of the data as JSON"
            rows={4}
            value={item}
            onWrite={(value) => {
              written.value = value;
            }}
          />
        </div>
        <div class="filters">
          <ActionButton label="Grade the answer" act={run} />
        </div>
        <div role="status">{grade.value?.of === graded && <Result grade={grade.value.grade} />}</div>
      </div>
    </details>
  );
}

function Result({ grade: { reward, scores, errors } }: { grade: Grade }) {
  const parts = Object.entries(scores);
  return (
    <>
      <p>
        Reward <strong>{short(reward)}</strong>
        {parts.length > 1 && (
          <span class="muted"> of {parts.map(([name, score]) => `${name} ${short(score)}`).join(', ')}</span>
        )}
      </p>
      {errors.map(({ grader, message }) => (
        <p key={grader} class="errors small">
          {grader}: {message}
        </p>
      ))}
    </>
  );
}
