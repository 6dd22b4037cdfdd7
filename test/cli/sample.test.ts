/** Samples on the command line, and the upload of a model folder. */
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { ADMIN_KEY, CHATS, startTestStack } from '../../api/testing/stack.js';
import { answered, claimAndTrain } from '../../api/testing/training.js';
import type { Checkpoint, Model, SampleTask } from '../../contracts/index.js';
import { modelFolder } from '../../formats/testing/models.js';
import { commandLine } from './command-line.js';

t.test('a continued text, and a chat', async (t) => {
  const asked: SampleTask[] = [];
  const stack = await startTestStack({
    samples: {
      sample: async (_, { request }, { onDeltas }) => {
        asked.push(request);
        const prompt = request.prompt ?? JSON.stringify(request.messages);
        const choice = {
          index: 0,
          text: ` answer ${asked.length}`,
          finish_reason: 'stop' as const,
          logprobs: [],
        };
        onDeltas?.([{ index: 0, text: choice.text, logprobs: [] }]);
        const usage = { prompt_tokens: 3, cached_tokens: 0, completion_tokens: 2 };
        return { ok: true, sample: { prompt, choices: [choice], usage } };
      },
    },
  });
  t.teardown(() => stack.close());
  const zerofleet = commandLine({ ZEROFLEET_URL: await stack.listen(), ZEROFLEET_API_KEY: ADMIN_KEY });
  const { id: dataset } = await stack.upload(CHATS, 'jsonl');
  const job = await stack.createJob({ name: 'chat', data: { dataset, chat_template: '{{ messages }}' } });
  await claimAndTrain(stack.store, job.id, { steps: 1 });
  const [{ prefix }] = (await stack.store.listCheckpoints(job.id)).data as [Checkpoint];
  await stack.objects.put(`${prefix}/MANIFEST.json`, Buffer.from('{}'));

  t.match(await zerofleet(['sample', 'chat', 'To be']), { code: 0, out: 'To be answer 1' });
  t.match(await zerofleet(['sample', job.id, 'To be']), { code: 0, out: 'To be answer 2' });
  const folder = join(t.testdir({ 'my-llama': {} }), 'my-llama');
  for (const [name, content] of modelFolder()) await writeFile(join(folder, name), content);
  const uploaded = await zerofleet(['models', 'upload', folder]);
  t.match(await zerofleet(['sample', 'my-llama', 'To be']), { code: 0, out: 'To be answer 3' });
  t.match(await zerofleet(['sample', uploaded.out.slice(0, 15), 'To be']), {
    code: 0,
    out: 'To be answer 4',
  });
  const none =
    'no job or model is named other, and no id begins with it; zerofleet list and zerofleet models show';
  t.match(await zerofleet(['sample', 'other', 'To be']), { code: 1, out: '', err: none });
  const unknown = await zerofleet(['sample', 'mdl_00000000000000000000000000', 'To be']);
  t.match(unknown, { code: 1, out: '', err: /404 model_not_found/ });
  t.match(await zerofleet(['sample', 'chat']), { code: 2, err: /missing required argument 'prompt'/ });
  const one = await zerofleet(['chat', 'chat', 'Why?', '-n', '5', '--system', 'Be brief', '--stop', '.']);
  t.match(one, { code: 0, out: / ?answer 5$/ });
  t.match(asked.at(-1), {
    messages: [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: 'Why?' },
    ],
    max_tokens: 5,
    stop: ['.'],
  });
  const talk = await zerofleet(['chat', 'chat'], { stdin: 'one\n\ntwo' });
  t.equal(talk.out, ' answer 6\n answer 7');
  t.strictSame(asked.at(-1)?.messages, [
    { role: 'user', content: 'one' },
    { role: 'assistant', content: ' answer 6' },
    { role: 'user', content: 'two' },
  ]);
  const whole = await zerofleet(['--json', 'chat', 'chat', 'Why?']);
  t.match(JSON.parse(whole.out), { choices: [{ text: ' answer 8' }], usage: { completion_tokens: 2 } });
});

t.test('answers of checkpoints to the prompts of the document', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const zerofleet = commandLine({ ZEROFLEET_URL: await stack.listen(), ZEROFLEET_API_KEY: ADMIN_KEY });
  await stack.createJob({ name: 'plain' });
  t.match(await zerofleet(['samples', 'plain']), { code: 0, out: /no prompts: set checkpoint.samples/ });
  const job = await stack.createJob({
    name: 'prompted',
    checkpoint: { samples: { prompts: [{ prompt: 'Once' }, { prompt: 'Twice' }] } },
  });
  t.match(await zerofleet(['samples', 'prompted']), { code: 0, out: /no checkpoint has answered yet/ });
  await answered(stack, job.id);
  const out = [
    'prompt: Once\nstep 5\n  one\n  line\nstep 10\n  too long',
    'prompt: Twice\nstep 5\n  two\nstep 10\n  too long',
  ].join('\n\n');
  t.match(await zerofleet(['samples', 'prompted']), { code: 0, out });
  const json = await zerofleet(['--json', 'samples', 'prompted']);
  t.strictSame(JSON.parse(json.out), [
    { step: 5, checkpoint_id: 'ckpt_1', answers: ['one\nline', 'two'], error: null },
    { step: 10, checkpoint_id: 'ckpt_2', answers: [], error: 'too long' },
  ]);
});

t.test('a model from its folder', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());
  const zerofleet = commandLine({ ZEROFLEET_URL: await stack.listen(), ZEROFLEET_API_KEY: ADMIN_KEY });
  const dir = t.testdir({
    blobs: {},
    empty: { '.hidden': '' },
    tiny: { 'a-checkpoint': { 'config.json': '{}' }, '.cache': { x: '' }, 'README.md': '' },
  });
  // A download cache of Hugging Face contains links into another folder.
  for (const [name, content] of modelFolder()) {
    await writeFile(join(dir, 'blobs', name), content);
    await symlink(join(dir, 'blobs', name), join(dir, 'tiny', name));
  }
  await mkdir(join(dir, 'tiny', 'nothing'));
  const uploaded = await zerofleet(['models', 'upload', join(dir, 'tiny/')]);
  t.match(uploaded, {
    code: 0,
    out: /^mdl_\w{26}$/,
    err: /^llama, .* ignored: README.md, a-checkpoint\/config.json$/,
  });
  await rm(join(dir, 'tiny', 'tokenizer.json'));
  await writeFile(join(dir, 'tiny', 'vocab.json'), '{}');
  t.match(await zerofleet(['models', 'upload', join(dir, 'tiny')]), {
    code: 0,
    err: /^warning: \/unread_tokenizer\/0: vocab.json is kept for exports/,
  });
  const reply = await stack.request({ url: `/v1/models/${uploaded.out}` });
  t.match(reply.json<Model>(), { name: 'tiny', model_type: 'llama' });
  t.match(await zerofleet(['models', 'upload', join(dir, 'empty')]), { code: 2, err: /has no files/ });
  t.match(await zerofleet(['models', 'upload', join(dir, 'none')]), { code: 2, err: /there is no file/ });
});
