import type { SweepRun } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { loss } from '../parts/format.js';
import { lastValue } from './sweep.js';

/** The best run so far, and what people do with it. */
export function BestRun({ run, isFinal }: { run: SweepRun; isFinal: boolean }) {
  const { value } = useLoaded((signal) => client.jobs.get(run.job_id, { signal }), [run.job_id, run.state]);
  const job = value.value;
  const checkpoint = job?.export?.checkpoint_id ?? job?.latest_checkpoint?.id;
  return (
    <section class="card part" aria-labelledby="best-run">
      <div class="title">
        <h2 id="best-run">{isFinal ? 'Best run' : 'Best run so far'}</h2>
        <span class="spring" />
        {checkpoint !== undefined && may('jobs:write') && (
          <>
            <a class="button" href={linkTo(['playground'], { model: checkpoint })}>
              Try it
            </a>
            <a class="button" href={linkTo(['new'], { weights: checkpoint })}>
              Train this further
            </a>
          </>
        )}
        <a class="button primary" href={linkTo(['runs', run.job_id])}>
          {job?.export ? 'Use this model' : 'Open the run'}
        </a>
      </div>
      <p>
        {run.name}: <strong>{loss(lastValue(run) ?? null)}</strong> after step{' '}
        {run.evaluations.at(-1)?.step ?? 0}
      </p>
    </section>
  );
}
