import { useSignal } from '@preact/signals';
import type { JobSpec, SweepSpec } from '../../../contracts/types.js';
import { rangeOf } from '../../typescript/index.js';
import { FormDialog, TextInput } from '../admin/form-dialog.js';
import { client } from '../app/connection.js';
import { go, linkTo } from '../app/router.js';
import { Labelled } from '../parts/labelled.js';

const FIRST_SPACE = 'train.optimizer.lr = 1e-4, 3e-4, 1e-3';

type Method = NonNullable<SweepSpec['method']>;

/** Asks for the values of a sweep over a document, and begins it. */
export function NewSweep({ spec, onClose }: { spec: JobSpec; onClose: () => void }) {
  const method = useSignal<Method>('grid');
  const send = async (form: FormData) => {
    const { id } = await client.sweeps.create(specOf(spec, form));
    go(linkTo(['sweeps', id]));
    return null;
  };
  return (
    <FormDialog title="Sweep over this document" submit="Begin the sweep" send={send} onClose={onClose}>
      <Labelled label="Values, one field a line" path={['space']}>
        {(attributes) => (
          <textarea
            {...attributes}
            class="mono"
            name="space"
            rows={4}
            defaultValue={FIRST_SPACE}
            required
            onInput={({ currentTarget: field }) => field.setCustomValidity(objectionTo(field.value))}
          />
        )}
      </Labelled>
      <p class="small muted">
        A list, or a range to draw from: <code>train.optimizer.lr = 1e-5..1e-2:log</code>
      </p>
      <Labelled label="Method" path={['method']}>
        {(attributes) => (
          <select
            {...attributes}
            name="method"
            value={method.value}
            onChange={(event) => (method.value = event.currentTarget.value as Method)}
          >
            <option value="grid">grid: every combination</option>
            <option value="random">random: some combinations</option>
            <option value="successive_halving">successive halving: worse runs end early</option>
          </select>
        )}
      </Labelled>
      {method.value !== 'grid' && (
        <TextInput
          name="runs"
          label={method.value === 'random' ? 'Runs to draw' : 'Runs to draw; empty for every combination'}
          type="number"
          min={1}
          max={100}
          required={method.value === 'random'}
        />
      )}
      {method.value === 'successive_halving' && (
        <TextInput
          name="min_steps"
          label="Steps before the first comparison; empty for a ninth"
          type="number"
          min={1}
        />
      )}
      <TextInput
        name="max_concurrent"
        label="Runs at the same time"
        type="number"
        min={1}
        max={100}
        defaultValue="4"
      />
    </FormDialog>
  );
}

/** Returns what is wrong with the values; empty for nothing. */
function objectionTo(text: string): string {
  const bad = linesOf(text).find((line) => rangeOf(line) === null);
  return bad === undefined ? '' : `"${bad}" names no values: write path = a, b, c or path = min..max`;
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

function specOf(spec: JobSpec, form: FormData): SweepSpec {
  const fields = linesOf(String(form.get('space')))
    .map(rangeOf)
    .filter((found) => found !== null);
  const number = (name: 'runs' | 'min_steps' | 'max_concurrent') => {
    const text = String(form.get(name) ?? '').trim();
    return text === '' ? {} : { [name]: Number(text) };
  };
  return {
    spec,
    space: Object.fromEntries(fields),
    method: String(form.get('method')) as Method,
    ...number('runs'),
    ...number('min_steps'),
    ...number('max_concurrent'),
  };
}
