import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { go, linkTo } from '../app/router.js';
import { may } from '../app/session.js';
import { setTitle } from '../app/title.js';
import { ActionButton } from '../parts/action.js';
import { StateBadge } from '../parts/badge.js';
import { Notice } from '../parts/notice.js';
import '../style/data.css';
import { useOf } from './records.js';

/** Runs that are looked through. */
const LOOKED_THROUGH = 500;

interface RecordViewProps {
  record: { id: string; name: string; description: string };
  page: string;
  facts: readonly (readonly [name: string, value: string | null])[];
  remove: () => Promise<void>;
  /** Address of a new run with it; undefined if none can begin with it. */
  train: string | undefined;
  children?: ComponentChildren;
}

/** A dataset or a model: its facts, the runs that use it, and its end. */
export function RecordView({
  record: { id, name, description },
  page,
  facts,
  remove,
  train,
  children,
}: RecordViewProps) {
  useEffect(() => setTitle(name), [name]);
  const act = async () => {
    await remove();
    go(linkTo([page]));
  };
  return (
    <>
      <section class="head">
        <div class="title">
          <h1>{name}</h1>
          <span class="spring" />
          {train !== undefined && may('jobs:write') && (
            <a class="button" href={train}>
              Train
            </a>
          )}
          <ActionButton label="Delete" kind="danger" confirm={`Delete ${name} for good?`} act={act} />
        </div>
        <p class="mono muted small">{id}</p>
        {description && <p>{description}</p>}
      </section>
      <section class="card" aria-label="Properties">
        <dl class="properties">
          {facts.map(
            ([label, value]) =>
              value !== null && (
                <div key={label}>
                  <dt class="muted">{label}</dt>
                  <dd>{value}</dd>
                </div>
              ),
          )}
        </dl>
      </section>
      {children}
      {may('jobs:read') && <Users id={id} />}
    </>
  );
}

function Users({ id }: { id: string }) {
  const { value, fault } = useLoaded(async () => {
    const jobs = await collect(client.jobs.list({ limit: 100 }), LOOKED_THROUGH);
    const users = jobs.flatMap((job) => {
      const use = useOf(job, id);
      return use === null ? [] : [{ job, use }];
    });
    return { users, isCut: jobs.length === LOOKED_THROUGH };
  }, [id]);
  const found = value.value;
  return (
    <section class="card" aria-label="Runs that use it">
      <h2>Runs that use it</h2>
      {fault.value && <Notice fault={fault.value} />}
      {found?.users.length === 0 && (
        <p class="muted">None{found.isCut && ` of the newest ${LOOKED_THROUGH}`}.</p>
      )}
      <ul class="users">
        {found?.users.map(({ job, use }) => (
          <li key={job.id}>
            <a class="name" href={linkTo(['runs', job.id])}>
              {job.name || 'unnamed'}
            </a>{' '}
            <StateBadge state={job.state} /> <span class="muted">{use}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
