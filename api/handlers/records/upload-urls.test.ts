import { createHash } from 'node:crypto';
import t from 'tap';
import type { Problem, Upload, UploadUrls } from '../../../contracts/index.js';
import type { UploadTerms } from '../../../platform/object-store/common/port.js';
import { PART } from '../../testing/part-uploads.js';
import { startTestStack, withMethod } from '../../testing/stack.js';

t.test('URLs for sending parts', async (t) => {
  const asked: [string, UploadTerms][] = [];
  const stack = await startTestStack({
    limits: { part_bytes: PART },
    wrap: ({ objects }) => ({
      objects: withMethod(objects, 'uploadUrl', async (key, terms) => {
        asked.push([key, terms]);
        return {
          url: `https://bucket.example/${key}?X-Amz-Signature=1`,
          headers: { checksum: `${terms.sha256}` },
        };
      }),
    }),
  });
  t.teardown(() => stack.close());
  const payload = { name: 'parts', bytes: 2 * PART + 7 };
  const { id } = (await stack.request({ method: 'POST', url: '/v1/uploads', payload })).json<Upload>();
  const urls = (payload: object) =>
    stack.request({ method: 'POST', url: `/v1/uploads/${id}/part-urls`, payload });
  const before = Date.now();
  const sha256 = ['a', 'b'].map((text) => createHash('sha256').update(text).digest('base64'));
  const signed = (await urls({ part_numbers: [3, 1], sha256, expires_seconds: 600 })).json<UploadUrls>();
  t.same(asked, [
    [`uploads/default/${id}/parts/000003`, { bytes: 7, seconds: 600, sha256: sha256[0] }],
    [`uploads/default/${id}/parts/000001`, { bytes: PART, seconds: 600, sha256: sha256[1] }],
  ]);
  t.match(signed.parts, [
    {
      part_number: 3,
      bytes: 7,
      url: /^https:\/\/bucket\.example\/uploads\//,
      headers: { checksum: sha256[0] },
    },
    { headers: { checksum: sha256[1] } },
  ]);
  t.match((await urls({ part_numbers: [1] })).json<UploadUrls>().parts, [{ headers: { checksum: 'null' } }]);
  for (const bad of [{ part_numbers: [1, 2], sha256: sha256.slice(1) }, { sha256 }])
    t.match((await urls(bad)).json<Problem>(), { status: 422, code: 'upload_part_invalid' });
  t.ok(Date.parse(`${signed.expires_at}`) >= before + 600_000);
  await stack.objects.put(`uploads/default/${id}/parts/000002`, Buffer.alloc(PART));
  const missing = (await urls({ via: 'api' })).json<UploadUrls>();
  t.match(missing, {
    expires_at: null,
    parts: [1, 3].map((partNumber) => ({
      part_number: partNumber,
      headers: {},
      url: `/v1/uploads/${id}/parts/${partNumber}`,
    })),
  });
  t.match((await urls({ part_numbers: [4] })).json<Problem>(), { status: 422, code: 'upload_part_invalid' });
});
