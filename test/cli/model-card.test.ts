/** Model cards. hub.deep.test.ts publishes one, and repeats the job of the card. */
import t from 'tap';
import { modelCard, repeatableDocument } from '../../clients/cli/model-card.js';
import type { Checkpoint, Dataset, Download, Job } from '../../contracts/index.js';
import { start } from './command-line.js';

const DIGEST = `sha256:${'d'.repeat(64)}`;
const CHECKPOINT: Checkpoint = {
  id: `ckpt_${'0'.repeat(26)}`,
  job_id: `job_${'0'.repeat(26)}`,
  step: 40,
  world_size: 1,
  state_digest: DIGEST,
  bytes: 1,
  committed_at: '2026-11-21T08:50:00.000Z',
  pinned: false,
  damaged: false,
  prefix: '',
};
const EXPORTED: Download = {
  checkpoint_id: CHECKPOINT.id,
  format: 'peft',
  dtype: 'bf16',
  weights: 'trained',
  tensorboard: false,
  state_digest: DIGEST,
  expires_at: null,
  files: [],
};

t.test('a card says what is needed, and names no bucket', async (t) => {
  const { stack, zerofleet } = await start(t);
  const made = await stack.createJob({ labels: { team: 'hidden-team' }, name: 'tuned' });
  const dataset = (await stack.request({ url: `/v1/datasets/${made.spec.data.dataset}` })).json<Dataset>();
  const job: Job = { ...made, spec: { ...made.spec, sources: { [dataset.id]: 's3://hidden-bucket/a.txt' } } };
  const facts = {
    repository: 'team/tuned',
    job,
    checkpoint: CHECKPOINT,
    exported: EXPORTED,
    base: null,
    datasets: [dataset],
  };
  const card = modelCard(facts);
  t.match(card, /^---\nlibrary_name: peft\ntags: \[zerofleet\]\n---\n\n# tuned\n/);
  t.match(card, `| digest of the training state | \`${DIGEST}\` |`);
  t.match(
    card,
    `Upload the content with the digest \`${dataset.digest}\`, and write its id in place of \`${dataset.id}\`.`,
  );
  t.notMatch(card, 'hidden');
  const [, document = ''] = /```json\n([\s\S]*?)\n```/.exec(card) ?? [];
  const checked = await zerofleet(['submit', '-', '--dry-run'], { stdin: document });
  t.equal(checked.code, 0, checked.err);
});

t.test('content of the Hub is named by its commit in the document', async (t) => {
  const { stack } = await start(t);
  const { spec } = await stack.createJob();
  const [model, commit] = [`mdl_${'0'.repeat(26)}`, 'c'.repeat(40)];
  const uris = { model: `hf://team/base@${commit}`, data: `hf://datasets/team/texts@${commit}/a.jsonl` };
  const document = repeatableDocument(
    {
      ...spec,
      model: { ...spec.model, preset: null, init_from: { model } },
      data: { ...spec.data, tokenizer: model },
      sources: { [model]: uris.model, [spec.data.dataset ?? '']: uris.data },
    },
    'jsonl',
  );
  t.match(document, { model: { init_from: { uri: uris.model } }, data: { uri: uris.data, format: 'jsonl' } });
  const { data } = document as { data: object };
  t.notOk('dataset' in data || 'tokenizer' in data, 'the model brings its tokenizer');
});
