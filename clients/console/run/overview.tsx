import { Suspense } from 'preact/compat';
import { useMemo } from 'preact/hooks';
import { isFinal } from '../../../contracts/job-states.js';
import type { Job } from '../../../contracts/types.js';
import { NONE } from '../../text/numbers.js';
import { lazily } from '../app/lazily.js';
import { share } from '../app/session.js';
import { Chart } from '../parts/chart.js';
import { Copy } from '../parts/copy.js';
import { compact, cost, count, duration, loss, lossOf, portion } from '../parts/format.js';
import { columnsOf, namesIn, REWARD } from './charts/curve.js';
import { bestEvaluation } from './charts/marks.js';
import { periodsOf } from './charts/periods.js';
import { RanksBand } from './charts/ranks-band.js';
import { Files } from './checkpoints/files.js';
import type { LiveRun } from './live-run.js';
import { score } from './rollouts.js';
import { Waiting } from './waiting.js';

const UseModel = lazily(() => import('./actions/use-model.js').then((module) => module.UseModel));

export function Overview({ run }: { run: LiveRun }) {
  const job = run.job.value;
  const points = run.points.value ?? [];
  const isSampled = job?.spec.train.objective?.type === 'grpo';
  const aim = isSampled ? REWARD : 'loss';
  const names = useMemo(
    () => namesIn(points).filter((name) => name === aim || name.startsWith('eval ')),
    [points, aim],
  );
  const data = useMemo(() => columnsOf(points, names), [points, names.join()]);
  const periods = periodsOf(run.attempts.value ?? [], points.at(-1)?.at ?? 0);
  if (job === null) return null;
  const last = points.at(-1);
  const title = isSampled ? 'Reward' : 'Loss';
  const formatted = isSampled ? score : loss;
  const value = last?.values[aim] ?? null;
  const text = value === null ? NONE : formatted(value);
  return (
    <>
      {/* A share does not read the pools. */}
      {share.value === null && ['queued', 'provisioning'].includes(job.state) && <Waiting run={run} />}
      <section class="card">
        <h2>{title}</h2>
        <dl class="figures">
          {[...(isSampled ? [[title, text]] : []), ...figuresOf(job)].map(([name, value]) => (
            <div key={name} class="figure">
              <dt class="muted small">{name}</dt>
              <dd class="value">{value}</dd>
            </div>
          ))}
        </dl>
        {last === undefined ? (
          <p class="muted">{run.points.value === null ? '…' : 'No step is done yet.'}</p>
        ) : (
          <Chart
            label={`${title} by step, ${text} at step ${last.step}`}
            names={names.map((name) => (name === REWARD ? 'reward' : name))}
            data={data}
            marks={(run.checkpoints.value ?? []).map(({ step }) => step)}
            format={formatted}
          />
        )}
      </section>
      <RanksBand periods={periods} max={job.spec.resources.ranks.max} />
      {share.value === null && job.export !== null && (
        <Suspense fallback={null}>
          <UseModel job={job} />
        </Suspense>
      )}
      <Proof job={job} />
    </>
  );
}

function figuresOf(job: Job): [name: string, value: string][] {
  const { progress, world_size, state, usage, spec } = job;
  const evaluation = bestEvaluation(job);
  const isTraining = world_size !== null && !isFinal(state);
  const { min, max } = spec.resources.ranks;
  return [
    ['Step', `${count(progress.step)} / ${count(progress.total_steps)}`],
    ['Loss', lossOf(progress)],
    ...(evaluation === null ? [] : [['Best evaluation', loss(evaluation)] as [string, string]]),
    ['Tokens', compact(progress.tokens)],
    ['Tokens/s', isTraining ? compact(progress.tokens_per_second) : '–'],
    ...(progress.padding ? [['Padding', portion(progress.padding)] as [string, string]] : []),
    ['Ranks', `${world_size ?? '–'} of ${min} to ${max}`],
    ['Time left', isTraining ? duration(progress.eta_seconds) : '–'],
    ['Run time', duration(usage.run_seconds)],
    ['Cost', cost(usage.cost)],
  ];
}

/** The digest: two runs, or two ways through one, are the same training exactly when it is equal. */
function Proof({ job: { export: exported, latest_checkpoint, spec } }: { job: Job }) {
  const proof = exported ?? latest_checkpoint;
  if (proof === null) return null;
  return (
    <section class="card proof">
      <div class="title">
        <h2>
          Digest {exported === null ? 'at' : 'of the exported'} step {count(proof.step)}
        </h2>
        <span class="spring" />
        <Copy label="Copy the digest" kind="quiet" text={proof.state_digest} />
      </div>
      <p class="muted small">Equal digests prove equal training, on any number of ranks.</p>
      <code class="digest">{proof.state_digest}</code>
      {exported && <Files checkpoint_id={exported.checkpoint_id} kind={spec.export} files={exported.files} />}
    </section>
  );
}
