import { useSignal } from '@preact/signals';
import type { Checkpoint, CheckpointExport, Job } from '../../../../contracts/types.js';
import { client } from '../../app/connection.js';
import { useLoaded } from '../../app/loaded.js';
import { may } from '../../app/session.js';
import { ActionButton } from '../../parts/action.js';
import { Dialog } from '../../parts/dialog.js';
import { count } from '../../parts/format.js';
import { Notice } from '../../parts/notice.js';
import { allowedKind, dtypesOf, formatsOf, type Kind, weightsOf } from './export-kinds.js';
import { Files } from './files.js';

/** An export of an adapter takes a second. */
const POLL_MS = 2_000;

interface CheckpointFilesProps {
  job: Job;
  checkpoint: Checkpoint;
  onClose: () => void;
}

/** Files of a checkpoint and of its exports, and the form for another export. */
export function CheckpointFiles({ job, checkpoint, onClose }: CheckpointFilesProps) {
  const { id, step } = checkpoint;
  const isPending = useSignal(false);
  const exports = useLoaded(
    async () => {
      const found = await client.checkpoints.exports(id);
      isPending.value = found.some(({ state }) => state === 'queued' || state === 'running');
      return found;
    },
    [id],
    { every_ms: isPending.value ? POLL_MS : 0 },
  );
  const own = useLoaded(() => client.checkpoints.downloadUrls(id, { via: 'api' }), [id]);
  const listed = exports.value.value;
  return (
    <Dialog title={`Files of step ${count(step)}`} onClose={onClose}>
      <div class="panel">
        <section aria-label="Exports">
          <h3>Exports</h3>
          {exports.fault.value && <Notice fault={exports.fault.value} />}
          {listed === null && exports.fault.value === null && <p class="muted">…</p>}
          {listed?.length === 0 && <p class="muted">This checkpoint was not exported yet.</p>}
          {listed?.map((exported) => (
            <Export key={exported.prefix} exported={exported} />
          ))}
          {may('jobs:write') && <ExportForm job={job} id={id} onRequested={() => exports.reload()} />}
        </section>
        <section aria-label="The checkpoint itself">
          <h3>The checkpoint itself</h3>
          {own.fault.value && <Notice fault={own.fault.value} />}
          <Files checkpoint_id={id} kind={null} files={own.value.value?.files ?? []} />
          <p class="muted small">
            A run continues from them on any number of ranks. <code>zerofleet download {id}</code> fetches
            them and checks each by its SHA-256.
          </p>
        </section>
      </div>
    </Dialog>
  );
}

const STATES: Readonly<Record<CheckpointExport['state'], string>> = {
  queued: '',
  running: 'good',
  succeeded: 'done',
  failed: 'bad',
};

function Export({ exported }: { exported: CheckpointExport }) {
  const { checkpoint_id, format, dtype, weights, tensorboard, state, error, files } = exported;
  const name = [
    format,
    dtype,
    ...(weights === 'trained' ? [] : [weights]),
    ...(tensorboard ? ['with TensorBoard file'] : []),
  ].join(' ');
  return (
    <article class="export" aria-label={name}>
      {name} <span class={`badge ${STATES[state]}`}>{state}</span>
      {error && <Notice fault={{ ...error, fields: [] }} />}
      <Files checkpoint_id={checkpoint_id} kind={exported} files={files} />
    </article>
  );
}

interface ExportFormProps {
  job: Job;
  id: string;
  onRequested: () => Promise<void>;
}

function ExportForm({ job: { spec }, id, onRequested }: ExportFormProps) {
  const { dtype, weights, tensorboard } = spec.export;
  const kind = useSignal<Kind>({ format: 'safetensors', dtype, weights, tensorboard });
  const set = (changed: Partial<Kind>) => {
    kind.value = allowedKind({ ...kind.value, ...changed }, spec);
  };
  const { format } = kind.value;
  const request = async () => {
    await client.checkpoints.export(id, kind.value);
    await onRequested();
  };
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <Choice label="Format" value={format} all={formatsOf(spec)} onChange={(format) => set({ format })} />
      <Choice
        label="Precision"
        value={kind.value.dtype}
        all={dtypesOf(format)}
        onChange={(dtype) => set({ dtype })}
      />
      {weightsOf(format, spec).length > 1 && (
        <Choice
          label="Weights"
          value={kind.value.weights}
          all={weightsOf(format, spec)}
          onChange={(weights) => set({ weights })}
        />
      )}
      <label>
        <input
          type="checkbox"
          checked={kind.value.tensorboard}
          onChange={(event) => set({ tensorboard: event.currentTarget.checked })}
        />
        with a TensorBoard file
      </label>
      <ActionButton label="Export" kind="primary" act={request} />
    </form>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  all: readonly T[];
  onChange: (value: T) => void;
}

function Choice<T extends string>({ label, value, all, onChange }: ChoiceProps<T>) {
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {all.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}
