import t, { type Test } from 'tap';
import { ApiError, collect } from '../../clients/typescript/index.js';
import type { JobSpec } from '../../contracts/index.js';
import { LARGE_TOKENIZER, modelFolder, tarOf } from '../../formats/testing/models.js';
import { tokenFile } from '../../formats/testing/tokens.js';
import { smallJob } from '../support/specs.js';
import { sampleText, startStack, type TestStack } from '../support/stack.js';

const CHAT = {
  messages: [
    { role: 'user', content: 'Why?' },
    { role: 'assistant', content: 'Because.' },
  ],
};

let stack: TestStack;
let dataset: string;

async function refusal(request: Promise<unknown>): Promise<ApiError> {
  try {
    await request;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the request was accepted');
}

/** POSTs a changed document and returns the refused fields as `pointer code`. */
async function refusedFields(t: Test, change: (spec: JobSpec) => void): Promise<string[]> {
  const spec = smallJob({ name: 'bad', dataset, steps: 5, ranks: 1 });
  change(spec);
  const { status, problem } = await refusal(stack.client.jobs.create(spec));
  t.equal(status, 422);
  t.equal(problem?.code, 'validation_failed');
  t.ok(problem?.errors?.every((field) => field.message.length > 0));
  return (problem?.errors ?? []).map(({ pointer, code }) => `${pointer} ${code}`).sort();
}

t.before(async () => {
  stack = await startStack(t);
  dataset = (await stack.client.datasets.create('openapi', sampleText())).id;
});

t.test('a body that is not JSON', async (t) => {
  const { baseUrl, apiKey } = stack.client.options;
  const response = await fetch(new URL('/v1/jobs', baseUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: '{"model": ',
  });
  t.equal(response.status, 400);
  t.match(await response.json(), { status: 400, code: 'malformed_json' });
});

t.test('an unknown field is reported with the nearest known one', async (t) => {
  const spec = { ...smallJob({ name: 'bad', dataset, steps: 5, ranks: 1 }), chekpoint: {} };
  const { problem } = await refusal(stack.client.jobs.create(spec));
  t.match(problem?.errors, [{ pointer: '/chekpoint', code: 'unknown_field', suggestion: /checkpoint/ }]);
});

t.test('all bad fields are reported together', async (t) => {
  const fields = await refusedFields(t, (spec) => {
    spec.train = { steps: 0, precision: 'fp8' as 'bf16' };
    spec.zero = { bucket_bytes: 1 };
  });
  t.equal(fields.length, 3, fields.join('\n'));
});

t.test('a micro-batch that does not divide the global batch', async (t) => {
  const fields = await refusedFields(t, (spec) => {
    spec.train = { ...spec.train, micro_batch_size: 3 };
  });
  t.strictSame(fields, ['/train/micro_batch_size micro_batch_not_divisor']);
});

t.test('more ranks than leaves', async (t) => {
  const fields = await refusedFields(t, (spec) => {
    spec.resources = { ranks: { min: 1, max: 6, preferred: 6 } };
  });
  t.ok(
    fields.length > 0 && fields.every((field) => /^\/resources\/ranks\/\w+ too_many_ranks$/.test(field)),
    fields.join(),
  );
});

t.test('a sequence longer than the data', async (t) => {
  const short = await stack.client.datasets.create(
    'short',
    'sixty-three bytes are not enough for a sequence of sixty-four',
  );
  const fields = await refusedFields(t, (spec) => {
    spec.data.dataset = short.id;
  });
  t.strictSame(fields, ['/train/sequence_length sequence_longer_than_data']);
});

t.test('an unknown dataset', async (t) => {
  const fields = await refusedFields(t, (spec) => {
    spec.data.dataset = 'ds_01KAJX8W3Q5R7T9V1X3Z5B7D9F';
  });
  t.strictSame(fields, ['/data/dataset dataset_not_found']);
});

t.test('a dataset that is empty or not UTF-8 leaves nothing behind', async (t) => {
  const before = await collect(stack.client.datasets.list());
  t.match(await refusal(stack.client.datasets.create('empty', '')), { status: 422, code: 'dataset_empty' });
  const latin1 = Buffer.from('déjà vu', 'latin1');
  t.match(await refusal(stack.client.datasets.create('latin1', latin1)), {
    status: 422,
    code: 'dataset_not_utf8',
  });
  const cut = Buffer.from('truncated within a character: é').subarray(0, -1);
  t.match(await refusal(stack.client.datasets.create('cut', cut)), {
    status: 422,
    code: 'dataset_not_utf8',
  });
  t.strictSame(await collect(stack.client.datasets.list()), before);
});

t.test('a bad line and a truncated token file leave nothing behind', async (t) => {
  const before = await collect(stack.client.datasets.list());
  const lines = '{"text": "one"}\n\n{"text": "three", }\n';
  const { status, problem } = await refusal(stack.client.datasets.create('lines', lines, 'jsonl'));
  t.match(
    { status, ...problem },
    { status: 422, code: 'dataset_line_invalid', detail: /^line 3: it is not JSON/ },
  );
  const cut = tokenFile([1, 2, 3]).subarray(0, -4);
  t.match(await refusal(stack.client.datasets.create('cut', cut, 'tokens')), {
    status: 422,
    code: 'dataset_tokens_invalid',
  });
  t.strictSame(await collect(stack.client.datasets.list()), before);
});

t.test("a token outside of the model's vocabulary", async (t) => {
  const tokens = await stack.client.datasets.create('tokens', tokenFile([1, 256, 3]), 'tokens');
  const fields = await refusedFields(t, (spec) => {
    spec.data = { dataset: tokens.id };
  });
  t.strictSame(fields, ['/data/dataset vocab_too_small']);
});

t.test('a tokenizer with more tokens than the model, an unknown tokenizer, a broken template', async (t) => {
  const files = modelFolder().set('tokenizer.json', Buffer.from(JSON.stringify(LARGE_TOKENIZER)));
  const { id } = await stack.client.models.create('large', await tarOf(files));
  const chats = await stack.client.datasets.create('chats', `${JSON.stringify(CHAT)}\n`, 'jsonl');
  const refused = (data: Partial<JobSpec['data']>) =>
    refusedFields(t, (spec) => {
      spec.data = { dataset, ...data };
    });
  t.strictSame(await refused({ tokenizer: id }), ['/data/tokenizer vocab_too_small']);
  t.strictSame(await refused({ tokenizer: `mdl_${'0'.repeat(26)}` }), ['/data/tokenizer model_not_found']);
  t.strictSame(await refused({ dataset: chats.id, chat_template: '{% for %}' }), [
    '/data/chat_template chat_template_invalid',
  ]);
});

t.test('a tokenizer that cannot be read', async (t) => {
  const files = modelFolder().set('tokenizer.json', Buffer.from('{"model": {"type": "BPE"}}'));
  t.match(await refusal(stack.client.models.create('bad', await tarOf(files))), {
    status: 422,
    code: 'tokenizer_invalid',
  });
  t.strictSame((await collect(stack.client.models.list())).length, 1);
});

t.test('no job was created', async (t) => {
  t.strictSame(await collect(stack.client.jobs.list()), []);
});
