import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { ago, count, loss } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { TableHead } from '../parts/table-head.js';

/** Runs that are looked through. */
const LOOKED_THROUGH = 200;

/** The results of runs, beside the uploaded models. */
export function TrainedModels() {
  const { value, fault } = useLoaded(async () => {
    const jobs = await collect(client.jobs.list({ limit: 100, state: ['succeeded'] }), LOOKED_THROUGH);
    return jobs.flatMap((job) => (job.export === null ? [] : [{ job, exported: job.export }]));
  }, []);
  const found = value.value;
  if (fault.value) return <Notice fault={fault.value} />;
  if (found === null || found.length === 0) return null;
  return (
    <section class="card scroll" aria-label="Trained models">
      <h2>Trained here</h2>
      <table class="runs">
        <TableHead names={['Run', 'Begun with', 'Step', 'Loss', 'Ended', 'Actions']} />
        <tbody>
          {found.map(({ job, exported }) => (
            <tr key={job.id}>
              <th scope="row">
                <a class="name" href={linkTo(['runs', job.id])}>
                  {job.name || 'unnamed'}
                </a>
              </th>
              <td>{job.spec.model.preset ?? job.spec.model.config.model_type}</td>
              <td>{count(exported.step)}</td>
              <td>{loss(job.progress.loss)}</td>
              <td class="muted">{ago(job.updated_at)}</td>
              <td class="actions">
                {may('jobs:write') && (
                  <>
                    <a href={linkTo(['playground'], { model: exported.checkpoint_id })}>Try it</a>
                    <a href={linkTo(['new'], { weights: exported.checkpoint_id })}>Fine-tune</a>
                  </>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
