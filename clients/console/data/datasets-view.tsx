import type { Dataset } from '../../../contracts/types.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { linkTo } from '../app/router.js';
import { Empty } from '../parts/empty.js';
import { bytes, count, dateTime } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { beginningOf } from './beginning.js';
import { ListView } from './list-view.js';
import { RecordView } from './record-view.js';
import { type Report, uploadDataset } from './upload.js';

const COLUMNS = [
  ['Format', ({ format }: Dataset) => format],
  ['Size', (dataset: Dataset) => bytes(dataset.bytes)],
  ['Documents', ({ num_documents }: Dataset) => count(num_documents)],
  ['Tokens', ({ num_tokens }: Dataset) => count(num_tokens)],
] as const;

async function sendAll(files: readonly File[], report: Report, signal: AbortSignal): Promise<void> {
  for (const [index, file] of files.entries())
    await uploadDataset(file, (share) => report((index + share) / files.length), signal);
}

const DROP = {
  label: 'Upload datasets',
  hint: 'Drop files here: .jsonl, .json, .csv, .parquet, text, .tokens or .bin.',
  send: sendAll,
};

export function DatasetsView() {
  return (
    <ListView
      title="Datasets"
      page="datasets"
      list={() => client.datasets.list({ limit: 100 })}
      columns={COLUMNS}
      drop={DROP}
      empty={
        <Empty title="No dataset yet.">
          <p>
            Drop a file above, or send it with <code>zerofleet datasets upload FILE</code>.
          </p>
        </Empty>
      }
    />
  );
}

export function DatasetView({ id }: { id: string }) {
  const { value, fault } = useLoaded(
    async (signal) => {
      const dataset = await client.datasets.get(id);
      return { dataset, preview: await beginningOf(dataset, signal) };
    },
    [id],
  );
  if (value.value === null) return fault.value && <Notice fault={fault.value} />;
  const { dataset, preview } = value.value;
  return (
    <RecordView
      record={dataset}
      page="datasets"
      facts={factsOf(dataset)}
      train={linkTo(['new'], { dataset: id })}
      remove={() => client.datasets.delete(id)}
    >
      {preview.length > 0 && (
        <section class="card" aria-label="Beginning of the content">
          <h2>Beginning</h2>
          {/* Reachable by keyboard, to scroll it. */}
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
          <pre class="preview" tabIndex={0}>
            {preview.join('\n')}
          </pre>
        </section>
      )}
    </RecordView>
  );
}

const some = (value: number) => (value === 0 ? null : count(value));

const factsOf = (dataset: Dataset): [string, string | null][] => [
  ['Format', dataset.format],
  ['Size', bytes(dataset.bytes)],
  ['Documents', count(dataset.num_documents)],
  ['Chats', some(dataset.num_chats)],
  ['Preferences', some(dataset.num_preferences)],
  ['Labelled', some(dataset.num_labelled)],
  ['Prompts', some(dataset.num_prompts)],
  ['Tokens', dataset.num_tokens === null ? null : count(dataset.num_tokens)],
  ['Largest token', dataset.max_token === null ? null : String(dataset.max_token)],
  ['Source', dataset.source?.uri ?? null],
  ['Digest', dataset.digest],
  ['Created', dateTime(dataset.created_at)],
];
