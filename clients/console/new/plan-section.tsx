import { useSignal } from '@preact/signals';
import { Suspense } from 'preact/compat';
import type { DryRun, Warning } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { lazily } from '../app/lazily.js';
import { go, linkTo } from '../app/router.js';
import { ActionButton } from '../parts/action.js';
import { bytes, compact, cost, count, duration, ranks } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { Snippets } from '../parts/snippets.js';
import { COMMANDS } from './commands.js';
import { asSpec, FIRST_DRAFT, valueAt, withValue } from './draft.js';
import { PATHS } from './fields.js';
import { TextInput, useForm } from './inputs.js';

const NewSweep = lazily(() => import('../sweeps/new-sweep.js').then((module) => module.NewSweep));

/** The job that the draft would become, and its start. */
export function PlanSection() {
  const { draft, plan } = useForm();
  const { dryRun, fields, isChecking } = plan;
  const isSweep = useSignal(false);
  const hasData = valueAt(draft.value, ['data']) !== undefined;
  const start = async () => {
    const { id } = await client.jobs.create(asSpec(draft.value));
    draft.value = FIRST_DRAFT;
    go(linkTo(['runs', id]));
  };
  return (
    <section class="card part plan" aria-labelledby="new-plan">
      <h2 id="new-plan">Plan</h2>
      <TextInput path={PATHS.name} label="Name of the run" />
      <p class="small muted" role="status">
        {!hasData ? 'Upload or choose data first.' : isChecking.value ? 'The server checks it.' : ''}
      </p>
      {fields.rest.value && <Notice fault={fields.rest.value} />}
      {dryRun.value && <Figures plan={dryRun.value} />}
      <div class="filters">
        <ActionButton label="Start the run" kind="primary" act={start} disabled={dryRun.value === null} />
        <button type="button" disabled={!hasData} onClick={() => (isSweep.value = true)}>
          Sweep
        </button>
        <button type="button" onClick={() => (draft.value = FIRST_DRAFT)}>
          Begin anew
        </button>
      </div>
      <Commands />
      {isSweep.value && (
        <Suspense fallback={null}>
          <NewSweep spec={asSpec(draft.value)} onClose={() => (isSweep.value = false)} />
        </Suspense>
      )}
    </section>
  );
}

function Figures({ plan }: { plan: DryRun }) {
  const { estimate, warnings } = plan;
  return (
    <>
      <dl class="properties">
        {figuresOf(plan).map(([name, value]) => (
          <div key={name}>
            <dt class="muted">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <details>
        <summary>Memory by number of ranks</summary>
        <dl class="properties">
          {estimate.data.map(({ world_size, bytes: { total } }) => (
            <div key={world_size}>
              <dt class="muted">{ranks(world_size)}</dt>
              <dd>{bytes(total)} each</dd>
            </div>
          ))}
        </dl>
      </details>
      {warnings.map((warning) => (
        <Warned key={warning.pointer + warning.code} warning={warning} />
      ))}
    </>
  );
}

/** A warning; a button sets the field to the value that it suggests. */
function Warned({ warning: { pointer, message, suggestion } }: { warning: Warning }) {
  const { draft } = useForm();
  const path = pointer.slice(1).split('/');
  return (
    <div class="notice small">
      <p>
        <strong>Warning:</strong> {message} <code class="muted">{path.join('.')}</code>
      </p>
      {suggestion !== undefined && (
        <button type="button" onClick={() => (draft.value = withValue(draft.value, path, suggestion))}>
          Set it to {suggestion}
        </button>
      )}
    </div>
  );
}

function figuresOf({ spec, estimate, work }: DryRun): [name: string, value: string][] {
  const { preferred } = spec.resources.ranks;
  const memory = estimate.data.find(({ world_size }) => world_size === preferred);
  const { duration: time } = work;
  return [
    ['Parameters', compact(estimate.num_params)],
    ['Steps', spec.train.steps === undefined ? 'counted with the data' : count(spec.train.steps)],
    ['Epochs', work.epochs === null ? 'counted with the data' : work.epochs.toPrecision(3)],
    ['Tokens', compact(work.tokens)],
    ['Ranks', ranks(preferred)],
    ['Memory of a rank', memory === undefined ? '–' : bytes(memory.bytes.total)],
    ['Duration', time === null ? 'known once a run was made in the pool' : `about ${duration(time.seconds)}`],
    ['Cost', time?.cost ? `about ${cost(time.cost)}` : '–'],
  ];
}

function Commands() {
  const { draft } = useForm();
  return (
    <details>
      <summary>Send it by a program</summary>
      <div class="part">
        <Snippets
          label="Language"
          texts={COMMANDS}
          about={{ baseUrl: client.options.baseUrl, draft: draft.value }}
        />
      </div>
    </details>
  );
}
