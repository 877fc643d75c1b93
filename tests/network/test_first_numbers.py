"""Numbers stay: statistics and transmissions of the first version of the heart, as digests.

The scores are quotients of whole numbers, and every engine adds in one order without fused operations, so that the
digests are the same on every processor.
"""

import hashlib

import numpy as np
import pytest

from collegium import collaborate
from collegium.network import reference_run, validated
from helpers import MAILBOXES, POLICIES, RULES

FIRST_VERSION = {
    ("ring", "HoldLast"): """
        f4302c86901be706 17b3faf8497f0f62 d361a4d432ca8b1a 2a83c94091ac042c 84889f87616e5a6f ed8f116bb2e012df
        864ab446124d7d71 ff63fd172b226bc6 377d892812b6dc30 d04c96b8ab15f515 80282ad548e86ae8 8cab59cdb8695950
        646e2d0dbf3463f4 7b80eccd2ec25f41 e2c20fdeb242d867 ce99445b5de976de fe9cab9b40e2f98a 03e8a909cd845f1a
        a6de33886cf2dbbf c45d95cf3825dbac 9bd3eaf461534656
    """,
    ("ring", "Renormalise"): """
        f4302c86901be706 17b3faf8497f0f62 79bbdac5ccf833d0 2353d65bf1fedfa9 5a4f8f6721338bbe a50e92c2863f440d
        864ab446124d7d71 ff63fd172b226bc6 377d892812b6dc30 d04c96b8ab15f515 e32cade37eaeacb1 0d7e73784fed3696
        5cdaf4f62413eed8 4b611d92aceede98 3772707409d2dfa0 62b104828f40d069 319d9be31ddff16e f231c691e3761875
        a6de33886cf2dbbf 7a7edcb34320be81 e33f68d4b3f0193e
    """,
    ("grid", "HoldLast"): """
        ced16ac59eb4702d 510f3cafae7a3126 14418f7e9ed987a6 4fd577fc3447717d bbe0e400a43c5982 30bf11c757e7e0e1
        4eeaa388c8e8b8f9 a5281a523b257941 13c6a244658ee50c 1b1126ddedfd5429 592049372cb2aab0 daf1b5f308b7f1bc
        abc1b512a819da68 0df221ac91074d97 0bfafd1e74920ba5 9a13d72c9317bc51 7c0e3aed95942b28 5480420018ca2110
        e828c57142d176ee 4b60861884509523 c6f44261d5e4166d
    """,
    ("grid", "Renormalise"): """
        ced16ac59eb4702d 510f3cafae7a3126 b5dfdffd03dd5d54 cca62613512b1ad6 db723e06dac0a592 c6bb198dd8d8d6e4
        4eeaa388c8e8b8f9 a5281a523b257941 13c6a244658ee50c 1b1126ddedfd5429 9e3f34899d5f45b6 38464a856da16f32
        f1022daa313e16fb 6ff8f7ee69f400c5 5ad93dcf95dbffcc c73337a42d431379 f0eceadc5e625840 22f5ed16aafd7741
        e828c57142d176ee 6bd40430a013e53a 982984eb49246ecf
    """,
    ("directed", "HoldLast"): """
        c1660ebe97772128 0e8c67e2ed3d4b1f 45bc04a8f8050407 3f12185fad6360f3 4a7add5cd7179ae6 e5daef0ed7440e31
        6fec456b66f318d3 86402030e81c0fd9 79d27e65d96a5814 4d7bdb77188efa43 0bbcbf89e5750aa6 07d0edee93a2761d
        c733286ed8ca8d15 1257ee1abd14ab04 f32679fd32efb40a 5f17f50421624163 1541e8b126727d64 cca3c4a7ce293fd8
        179b070f5593a5ac eb7e41f7be1aaf4a c762941748a29fc7
    """,
    ("directed", "Renormalise"): """
        c1660ebe97772128 0e8c67e2ed3d4b1f 5b6948b3d0a7e93f 086827af1e7b120e db2b820ac8444b44 65e144dad1868319
        6fec456b66f318d3 86402030e81c0fd9 79d27e65d96a5814 4d7bdb77188efa43 c2bae42394d0cf33 a00d2799719f670c
        51510739b6946aa8 af2eff49c6f5c9de 4963c608ee79a0e3 110b5f9154dbe6db 3449f7eadbbf02c2 3e5dc2bdb5cc8ae8
        179b070f5593a5ac 56572f78d1ecadf8 ea57ba8755e7b887
    """,
    ("no-self-loops", "HoldLast"): """
        232e47b0633a2f57 b1d3254f2e945629 95beafb89101c773 5d0ec427b3522f06 0132d6905d86af89 6b692b183db3a411
        b1078f42be284105 bd105b4472a68044 21b843ea4e35d061 be2ef8c46fd3dae5 ce5b7e0edbf32fb1 291764b684b880cd
        f550ea5c4061885d 67df2a62c66acabc 0bb7141c86a5c3a5 b593730335b87d0c cbc0c654105f9d8d eab6bab7b2abc173
        9b5d03375940d06c 4d0023b09e69a2f0 09754f504b9ef658
    """,
    ("no-self-loops", "Renormalise"): """
        232e47b0633a2f57 b1d3254f2e945629 b890b8d726a42036 b8ff871fadef97bb ef9d07e85951d23e faf5a92ba298e9de
        b1078f42be284105 bd105b4472a68044 21b843ea4e35d061 be2ef8c46fd3dae5 66c67dabb6497295 024eda3f2bd7d752
        ccd4ee17c675c181 e85e9d2b96ef68a5 3af59bd72ae24af7 138753628d258828 cbc0c654105f9d8d c87dcb52c5c95fa5
        9b5d03375940d06c 56ac910e069e6c57 c7608dfb75ad4c1f
    """,
    ("lonely", "HoldLast"): """
        1f5ce20b27de9941 658f1718e4f7c7ac 1f5ce20b27de9941 1f5ce20b27de9941 1f5ce20b27de9941 1f5ce20b27de9941
        a4082630e10aa8fd 11e5a37a83440b5f 79fd82d1666e72a1 79da572e46647a3b a4082630e10aa8fd 11e5a37a83440b5f
        a4082630e10aa8fd 11e5a37a83440b5f a4082630e10aa8fd 11e5a37a83440b5f a4082630e10aa8fd 11e5a37a83440b5f
        33f7341dd1b52717 93610c3827b151f5 0a2a06a45f11c2ce
    """,
    ("lonely", "Renormalise"): """
        1f5ce20b27de9941 658f1718e4f7c7ac 1f5ce20b27de9941 1f5ce20b27de9941 1f5ce20b27de9941 1f5ce20b27de9941
        a4082630e10aa8fd 11e5a37a83440b5f 79fd82d1666e72a1 79da572e46647a3b a4082630e10aa8fd 11e5a37a83440b5f
        a4082630e10aa8fd 11e5a37a83440b5f a4082630e10aa8fd 11e5a37a83440b5f a4082630e10aa8fd 11e5a37a83440b5f
        33f7341dd1b52717 93610c3827b151f5 0a2a06a45f11c2ce
    """,
}


def exact_scores(n: int, K: int) -> np.ndarray:
    """Scores of both signs with exact zeros and ties among them, the same on every processor."""
    values = ((np.arange(n * K) * 7919 % 2001 - 1000) / 2000.0).reshape(n, K)
    values[::7] = 0.0
    values[3::7] = np.round(values[3::7], 1)
    return values


def digest(statistics, transmissions):
    numbers = np.ascontiguousarray(statistics).tobytes() + transmissions.astype(np.int64).tobytes()
    return hashlib.blake2b(numbers, digest_size=8).hexdigest()


@pytest.mark.parametrize("mailbox", MAILBOXES, ids=lambda mailbox: type(mailbox).__name__)
@pytest.mark.parametrize("name", POLICIES)
def test_numbers_are_those_of_the_first_version(name, mailbox):
    p, expected = POLICIES[name], FIRST_VERSION[name, type(mailbox).__name__].split()
    x = exact_scores(37, p.size)
    for rule, first in zip(RULES, expected, strict=True):
        run = collaborate(x, p, 15, rule, 5, mailbox=mailbox)
        assert digest(run.statistics, run.transmissions) == first, f"{rule}, kernel"
        slow = reference_run(validated(x, p, 15, [rule], 5, mailbox=mailbox), rule)
        assert digest(slow.statistics, slow.costs.sum(axis=0)) == first, f"{rule}, the rule itself"
