import t from 'tap';
import { crowdedFolders, folderCircles } from './native-folders.mjs';

const files = (folder, count) => Array.from({ length: count }, (_, index) => `${folder}/f${index}.cc`);
const include = (file, header) => ({ file, header });

t.test(
  'a folder has 30 files at most, not counting its folders; golden data have as many as they need',
  async (t) => {
    t.strictSame(
      crowdedFolders([...files('zero', 30), ...files('zero/step', 30), ...files('test/golden', 99)]),
      [],
    );
    t.match(crowdedFolders([...files('zero', 30), ...files('zero/step', 31)]), [
      /native\/zero\/step has 31 files/,
    ]);
  },
);

t.test('folders that include each other are found at every level', async (t) => {
  const oneWay = [
    include('model/layers/norm.cc', 'kernels/norm/rmsnorm.h'),
    include('kernels/norm/cpu/rmsnorm.cc', 'kernels/norm/rmsnorm.h'),
    include('kernels/norm/rmsnorm.cc', 'kernels/common/backend.h'),
    include('kernels/norm/rmsnorm.cc', 'kernels/norm/rmsnorm.h'),
  ];
  t.strictSame(folderCircles(oneWay), []);
  const back = (file, header) => folderCircles([...oneWay, include(file, header)]);
  t.match(back('kernels/common/scratch.cc', 'model/layers/tensor.h'), [
    /^native: its folders .*model → kernels → model/,
  ]);
  t.match(back('kernels/common/backend.cc', 'kernels/norm/layernorm.h'), [
    /^native\/kernels: .*norm → common → norm/,
  ]);
  t.match(back('kernels/norm/layernorm.cc', 'kernels/norm/cpu/launch.h'), [
    /^native\/kernels\/norm: .*cpu → \. → cpu/,
  ]);
});

t.test('a circle over three folders is told once, with its includes', async (t) => {
  const circle = [include('a/x.cc', 'b/y.h'), include('b/y.cc', 'c/z.h'), include('c/z.cc', 'a/x.h')];
  t.strictSame(folderCircles(circle), [
    'native: its folders a → b → c → a form a circle: a/x.cc includes b/y.h; b/y.cc includes c/z.h; c/z.cc includes a/x.h',
  ]);
});
