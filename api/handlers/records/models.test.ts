import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import t from 'tap';
import type { Model, Page, Problem } from '../../../contracts/index.js';
import { parseWeights } from '../../../formats/models/weights.js';
import {
  modelFolder,
  safetensorsFile,
  TINY_CONFIG,
  tarOf,
  testData,
} from '../../../formats/testing/models.js';
import { sentencepieceModel } from '../../../formats/testing/sentencepiece.js';
import { Tokenizer } from '../../../formats/tokenizer/tokenizer.js';
import { storedKeys, TAR, upload } from '../../testing/model-uploads.js';
import { startTestStack } from '../../testing/stack.js';

t.test('models', async (t) => {
  const stack = await startTestStack();
  t.teardown(() => stack.close());

  t.test('an upload is stored byte for byte, with the positions of its weights', async (t) => {
    const files = modelFolder({ shards: 3 });
    const extra: [string, Buffer][] = [
      ['README.md', Buffer.from('# a model')],
      ['original/model.safetensors', Buffer.from('of another format')],
      ['training_args.bin', Buffer.alloc(70_000)],
    ];
    const reply = await upload(stack, await tarOf([...files, ...extra], './'));
    t.equal(reply.statusCode, 201, reply.body);
    const model = reply.json<Model>();
    t.equal(reply.headers.location, `/v1/models/${model.id}`);
    t.match(model, { name: 'a model', model_type: 'llama', dtypes: ['bf16'], has_tokenizer: true });
    t.strictSame(model.tokenizer, { vocab_size: 27, chat_template: null });
    t.strictSame(model.config, TINY_CONFIG);
    t.strictSame(model.ignored_files, ['README.md', 'original/model.safetensors', 'training_args.bin']);
    t.strictSame(
      model.files,
      [...files]
        .map(([name, bytes]) => ({
          name,
          bytes: bytes.length,
          sha256: createHash('sha256').update(bytes).digest('hex'),
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    );
    t.equal(
      model.bytes,
      [...files.values()].reduce((sum, { length }) => sum + length, 0),
    );
    for (const [name, bytes] of files)
      t.ok((await stack.objects.get(`models/${model.id}/${name}`)).equals(bytes), name);

    const weights = parseWeights(await stack.objects.get(`models/${model.id}/WEIGHTS.json`));
    const tensors = weights.files.flatMap(({ file, tensors }) =>
      tensors.map((tensor) => ({ file, ...tensor })),
    );
    t.equal(
      tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0),
      model.num_parameters,
    );
    for (const { file, param, dtype, shape, byte_begin, byte_end } of tensors)
      t.ok(
        files
          .get(file)
          ?.subarray(byte_begin, byte_end)
          .equals(testData(param, shape, dtype)),
        param,
      );
    t.strictSame((await stack.request({ url: `/v1/models/${model.id}` })).json(), model);
  });

  t.test('a folder with only a tokenizer.model gets a tokenizer.json made of it', async (t) => {
    const files = modelFolder();
    const sentencepiece = sentencepieceModel('bpe_llama');
    files.set('tokenizer.model', sentencepiece).delete('tokenizer.json');
    files.set('tokenizer_config.json', Buffer.from(JSON.stringify({ add_eos_token: true })));
    const reply = await upload(stack, await tarOf(files));
    t.equal(reply.statusCode, 201, reply.body);
    const model = reply.json<Model>();
    t.match(model, {
      has_tokenizer: true,
      unread_tokenizer: undefined,
      tokenizer: { chat_template: null, made_from: 'tokenizer.model' },
    });
    const names = [...files.keys(), 'special_tokens_map.json', 'tokenizer.json'];
    t.strictSame(
      model.files.map(({ name }) => name),
      names.sort(),
    );
    const stored = async (name: string) => await stack.objects.get(`models/${model.id}/${name}`);
    t.ok((await stored('tokenizer.model')).equals(sentencepiece));
    for (const { name, sha256 } of model.files)
      t.equal(
        createHash('sha256')
          .update(await stored(name))
          .digest('hex'),
        sha256,
      );
    t.match(JSON.parse((await stored('special_tokens_map.json')).toString()), { eos_token: '</s>' });
    const tokenizer = new Tokenizer(JSON.parse((await stored('tokenizer.json')).toString()));
    t.strictSame(tokenizer.around, { before: [1], after: [2] });
    t.equal(model.tokenizer?.vocab_size, 340);
    const again = await upload(stack, await tarOf([...files].reverse()));
    t.equal(again.json<Model>().digest, model.digest);
    // One that the folder has is stored as it is, whatever stands beside it.
    files.set('tokenizer.json', modelFolder().get('tokenizer.json') as Buffer);
    files.set('tokenizer.model', Buffer.from('of another program'));
    const both = await upload(stack, await tarOf(files));
    t.strictSame(both.json<Model>().tokenizer, { vocab_size: 27, chat_template: null });
  });

  t.test('large vocabularies of other programs are kept', async (t) => {
    const words = Object.fromEntries(Array.from({ length: 150_000 }, (_, id) => [`a word ${id}`, id]));
    const files = modelFolder().set('vocab.json', Buffer.from(JSON.stringify(words)));
    files.set('merges.txt', Buffer.alloc(2_000_000, 'a b\n'));
    const reply = await upload(stack, await tarOf(files));
    t.equal(reply.statusCode, 201, reply.body);
    t.match(
      reply.json<Model>().files.map(({ name }) => name),
      ['config.json', 'generation_config.json', 'merges.txt'],
    );
  });

  t.test('the same folder is the same model in any order, chunking and packing', async (t) => {
    const files = modelFolder({ shards: 2, dtype: 'F32' });
    const digests = new Set<string>();
    const archives = [
      [await tarOf(files)],
      [await tarOf([...files].reverse(), 'models/tiny/')],
      Array.from(await tarOf(files), (byte) => Buffer.of(byte)),
    ];
    for (const pieces of archives) {
      const reply = await upload(stack, Readable.from(pieces));
      t.equal(reply.statusCode, 201, reply.body);
      digests.add(reply.json<Model>().digest);
    }
    t.equal(digests.size, 1);
  });

  t.test('names without prefix and tensors that are not weights are recognized', async (t) => {
    const [name, file] = ['model.safetensors', modelFolder().get('model.safetensors') as Buffer];
    const header = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE())).toString());
    const bytes = file.subarray(8 + Number(file.readBigUInt64LE()));
    const tensors = Object.entries(
      header as Record<string, { shape: number[]; data_offsets: [number, number] }>,
    )
      .filter(([tensor]) => tensor !== '__metadata__')
      .map(
        ([
          tensor,
          {
            shape,
            data_offsets: [begin, end],
          },
        ]) => ({
          name: tensor.replace(/^model\./, ''),
          dtype: 'BF16' as const,
          shape,
          data: bytes.subarray(begin, end),
        }),
      );
    const embedding = tensors.find((tensor) => tensor.name === 'embed_tokens.weight');
    if (embedding === undefined) throw new Error('no embedding');
    const more = [
      {
        name: 'layers.0.self_attn.rotary_emb.inv_freq',
        dtype: 'F32' as const,
        shape: [4],
        data: Buffer.alloc(16),
      },
      { ...embedding, name: 'lm_head.weight' },
    ];
    const folder = modelFolder().set(name, safetensorsFile([...tensors, ...more]));
    t.equal((await upload(stack, await tarOf(folder))).statusCode, 201);

    const other = { ...embedding, name: 'lm_head.weight', data: Buffer.alloc(embedding.data.length) };
    folder.set(name, safetensorsFile([...tensors, other]));
    const reply = await upload(stack, await tarOf(folder));
    t.match(reply.json<Problem>(), {
      code: 'model_tensor_mismatch',
      detail: /not the same as model.embed_tokens/,
    });
  });

  const good = await tarOf(modelFolder());

  t.test('bad parameters and media types', async (t) => {
    t.equal((await upload(stack, good, '')).json<Problem>().code, 'invalid_parameter');
    const text = { 'content-type': 'application/octet-stream' };
    const reply = await stack.request({
      method: 'POST',
      url: '/v1/models?name=x',
      headers: text,
      payload: good,
    });
    t.equal(reply.json<Problem>().code, 'unsupported_media_type');
    const headers = { ...TAR, ...(await stack.headersOf('datasets')) };
    const forbidden = await stack.request({
      method: 'POST',
      url: '/v1/models?name=x',
      headers,
      payload: good,
    });
    t.equal(forbidden.statusCode, 403);
  });

  t.test('lists, newest first, including presets', async (t) => {
    const page: Page<Model> & { presets: string[]; families: string[] } = (
      await stack.request({ url: '/v1/models?limit=1' })
    ).json();
    t.equal(page.data.length, 1);
    t.ok(page.presets.includes('llama-tiny'));
    t.ok(page.families.includes('llama'));
    const next: Page<Model> = (await stack.request({ url: `/v1/models?after=${page.next_cursor}` })).json();
    t.ok(next.data.every((model) => model.id < (page.data[0]?.id ?? '')));
  });

  t.test('a deleted model leaves nothing', async (t) => {
    const { id } = (await upload(stack, good)).json<Model>();
    const url = `/v1/models/${id}`;
    t.equal((await stack.request({ method: 'DELETE', url })).statusCode, 204);
    t.strictSame(await storedKeys(stack, `models/${id}`), []);
    for (const method of ['GET', 'DELETE'] as const)
      t.equal((await stack.request({ method, url })).json<Problem>().code, 'model_not_found');
  });
});
