import type { AuditEntry } from '../../../contracts/types.js';
import { collect } from '../../typescript/index.js';
import { client } from '../app/connection.js';
import { useList } from '../app/list.js';
import { useLoaded } from '../app/loaded.js';
import { go, linkTo, route } from '../app/router.js';
import { CompleteInput } from '../parts/complete-input.js';
import { Empty } from '../parts/empty.js';
import { dateTime, words } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { LoadOlder } from '../parts/records-table.js';
import { TableHead } from '../parts/table-head.js';
import { FILTERS, type Filters, filtersOf, kindOf, operationText, requestOf } from './audit.js';

/** Keys that are offered. Others can be entered by their id. */
const OFFERED = 200;

const linkOf = (filters: Partial<Filters>) => linkTo(['admin'], { tab: 'audit', ...filters });

export function AuditTab() {
  const filters = filtersOf(route.value.query);
  const values = FILTERS.map((name) => filters[name]);
  const { list, more } = useList(() => client.audit(requestOf(filters)), values);
  const entries = list.value.value;
  return (
    <>
      <AuditFilters />
      {list.fault.value && <Notice fault={list.fault.value} />}
      {entries?.items.length === 0 && <NoEntries filtered={values.some((value) => value !== '')} />}
      {entries !== null && entries.items.length > 0 && (
        <section class="card scroll" aria-label="Audit log">
          <table>
            <TableHead names={['Time', 'Sender', 'Operation', 'Resource', 'Outcome', 'Request']} />
            <tbody>
              {entries.items.map((entry) => (
                <EntryRow key={entry.id} entry={entry} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      <LoadOlder name="entries" list={entries} more={more} />
    </>
  );
}

function NoEntries({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No entry passes these filters." />;
  return (
    <Empty title="Nothing was changed yet.">
      <p>Each request that changes something, or is refused, gets an entry here.</p>
    </Empty>
  );
}

function EntryRow({ entry }: { entry: AuditEntry }) {
  const {
    at,
    principal_id,
    principal_name,
    session,
    operation,
    resource,
    outcome,
    status,
    code,
    request_id,
  } = entry;
  return (
    <tr>
      <td>
        <time dateTime={at}>{dateTime(at)}</time>
      </td>
      <td>
        <a href={linkOf({ principal_id })} title={`Only ${principal_id}`}>
          {principal_name}
        </a>
        {session && <span class="muted"> in a browser</span>}
      </td>
      <th scope="row">
        <a href={linkOf({ operation })} title={`Only ${operation}`}>
          {operationText(operation)}
        </a>
      </th>
      <td class="mono small">
        {resource?.startsWith('job_') ? (
          <a class="link" href={linkTo(['runs', resource])}>
            {resource}
          </a>
        ) : (
          resource
        )}
      </td>
      <td>
        <span class={`badge ${kindOf(entry)}`}>{outcome}</span>{' '}
        <span class="muted">
          {status}
          {code !== null && ` ${words(code)}`}
        </span>
      </td>
      <td class="mono muted small wrap">{request_id}</td>
    </tr>
  );
}

function AuditFilters() {
  const filters = filtersOf(route.value.query);
  const field = (name: keyof Filters) => ({
    value: filters[name],
    onComplete: (written: string) =>
      go(linkOf({ ...filtersOf(route.value.query), [name]: written.trim() }), { replace: true }),
  });
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <label>
        Operation
        <CompleteInput type="text" placeholder="cancelJob" {...field('operation')} />
      </label>
      <label>
        Resource
        <CompleteInput type="text" placeholder="job_…" {...field('resource')} />
      </label>
      <label>
        Sender
        <CompleteInput
          type="text"
          placeholder="key_…, shr_… or usr_…"
          list="audit-keys"
          {...field('principal_id')}
        />
      </label>
      <KeyOptions />
      <label>
        Since
        <CompleteInput type="datetime-local" {...field('since')} />
      </label>
      <label>
        Until
        <CompleteInput type="datetime-local" {...field('until')} />
      </label>
      <a class="button" href={linkOf({})}>
        All entries
      </a>
    </form>
  );
}

function KeyOptions() {
  const { value } = useLoaded(() => collect(client.apiKeys.list({ limit: 100 }), OFFERED), []);
  return (
    <datalist id="audit-keys">
      {value.value?.map(({ id, name }) => (
        <option key={id} value={id} label={name} />
      ))}
    </datalist>
  );
}
