import unittest


class Totals(unittest.TestCase):
    def test_tax_is_included(self) -> None:
        assert round(100 * 1.19) == 119
